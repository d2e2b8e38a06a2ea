#include "base/digest.h"

#include <openssl/evp.h>
#include <xxhash.h>

// The same functions, choosing the widest vectors at run time; x86 only.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#include <array>

namespace maxport {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  MAXPORT_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(ByteSpan bytes) {
  MAXPORT_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::finish_hex() {
  std::array<std::byte, 32> digest;
  MAXPORT_CHECK(EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1);
  return hex(digest);
}

std::string sha256_hex(ByteSpan bytes) {
  Sha256 digest;
  digest.update(bytes);
  return digest.finish_hex();
}

uint64_t xxh64(ByteSpan bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string xxh128_hex(ByteSpan bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return hex(std::as_bytes(std::span(canonical.digest)));
}

}  // namespace maxport
