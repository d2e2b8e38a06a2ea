// Digests: SHA-256 for what users compare, XXH3-128 for names and guards inside maxport.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"

namespace maxport {

/// SHA-256 (FIPS 180-4), fed in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(ByteSpan bytes);
  /// Lower-case hex of everything fed so far; the object is spent afterwards.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(ByteSpan bytes);

/// XXH3, 64 bits.
uint64_t xxh64(ByteSpan bytes);

/// XXH3, 128 bits, as 32 lower-case hex digits (big-endian canonical form).
std::string xxh128_hex(ByteSpan bytes);

}  // namespace maxport
