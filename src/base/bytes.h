// Byte spans and the little- and big-endian, LEB128 and CRC helpers that the formats share.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace maxport {

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

inline ByteSpan as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view as_text(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <std::integral T>
T load_le(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = std::byteswap(value);
  return value;
}

template <std::integral T>
void store_le(T value, std::byte* at) {
  if constexpr (std::endian::native == std::endian::big) value = std::byteswap(value);
  std::memcpy(at, &value, sizeof value);
}

/// CRC-32C (Castagnoli), initial value and final xor 0xFFFFFFFF; of "123456789" it is 0xE3069283.
uint32_t crc32c(ByteSpan bytes);
/// Continues a CRC: crc32c_extend(crc32c(a), b) == crc32c(a + b).
uint32_t crc32c_extend(uint32_t crc, ByteSpan bytes);

/// Lower-case hexadecimal.
std::string hex(ByteSpan bytes);

/// Reads a byte string front to back; every read is bounds checked and fails with kCorruptData naming `what` and the
/// offset.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes, std::string_view what = "data") : bytes_(bytes), what_(what) {}

  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }

  Result<ByteSpan> read_bytes(uint64_t count);
  Result<uint8_t> read_u8();
  Result<uint32_t> read_le32();
  Result<uint64_t> read_le64();
  Result<uint32_t> read_be32();
  /// Unsigned LEB128 that must fit `bits` (16, 32 or 64).
  Result<uint64_t> read_varint(int bits);

 private:
  ByteSpan bytes_;
  std::string_view what_;
  size_t offset_ = 0;
};

/// Appends to a byte string.
class ByteWriter {
 public:
  void write_bytes(ByteSpan bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void write_text(std::string_view text) { write_bytes(as_bytes(text)); }
  void write_u8(uint8_t value) { out_.push_back(static_cast<std::byte>(value)); }
  void write_le32(uint32_t value);
  void write_le64(uint64_t value);
  void write_be32(uint32_t value);
  void write_varint(uint64_t value);

  size_t size() const { return out_.size(); }
  Bytes& bytes() { return out_; }
  Bytes take() { return std::move(out_); }

 private:
  Bytes out_;
};

}  // namespace maxport
