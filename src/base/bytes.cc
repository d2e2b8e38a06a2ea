#include "base/bytes.h"

#include <isa-l.h>

namespace maxport {

uint32_t crc32c_extend(uint32_t crc, ByteSpan bytes) {
  // ISA-L takes an int length and neither inverts its input nor its output.
  uint32_t state = ~crc;
  while (!bytes.empty()) {
    const size_t step = std::min<size_t>(bytes.size(), size_t{1} << 30);
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(step), state);
    bytes = bytes.subspan(step);
  }
  return ~state;
}

uint32_t crc32c(ByteSpan bytes) { return crc32c_extend(0, bytes); }

std::string hex(ByteSpan bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (std::byte byte : bytes) {
    out += kDigits[std::to_integer<unsigned>(byte) >> 4];
    out += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

Result<ByteSpan> ByteReader::read_bytes(uint64_t count) {
  if (count > remaining())
    return fail(ErrorKind::kCorruptData, "{} ends at byte {}, but {} more bytes are needed at offset {}", what_,
                bytes_.size(), count, offset_);
  ByteSpan out = bytes_.subspan(offset_, count);
  offset_ += count;
  return out;
}

Result<uint8_t> ByteReader::read_u8() {
  MAXPORT_ASSIGN_OR_RETURN(ByteSpan bytes, read_bytes(1));
  return std::to_integer<uint8_t>(bytes[0]);
}

Result<uint32_t> ByteReader::read_le32() {
  MAXPORT_ASSIGN_OR_RETURN(ByteSpan bytes, read_bytes(4));
  return load_le<uint32_t>(bytes.data());
}

Result<uint64_t> ByteReader::read_le64() {
  MAXPORT_ASSIGN_OR_RETURN(ByteSpan bytes, read_bytes(8));
  return load_le<uint64_t>(bytes.data());
}

Result<uint32_t> ByteReader::read_be32() {
  MAXPORT_ASSIGN_OR_RETURN(uint32_t value, read_le32());
  return std::byteswap(value);
}

Result<uint64_t> ByteReader::read_varint(int bits) {
  const size_t start = offset_;
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    MAXPORT_ASSIGN_OR_RETURN(uint8_t byte, read_u8());
    const uint64_t part = byte & 0x7f;
    const bool fits = shift < bits && (shift + 7 <= bits || (part >> (bits - shift)) == 0);
    if (!fits)
      return fail(ErrorKind::kCorruptData, "{}: the variable-length integer at offset {} does not fit {} bits", what_,
                  start, bits);
    value |= part << shift;
    if ((byte & 0x80) == 0) return value;
  }
}

void ByteWriter::write_le32(uint32_t value) {
  out_.resize(out_.size() + 4);
  store_le(value, out_.data() + out_.size() - 4);
}

void ByteWriter::write_le64(uint64_t value) {
  out_.resize(out_.size() + 8);
  store_le(value, out_.data() + out_.size() - 8);
}

void ByteWriter::write_be32(uint32_t value) { write_le32(std::byteswap(value)); }

void ByteWriter::write_varint(uint64_t value) {
  while (value >= 0x80) {
    write_u8(static_cast<uint8_t>(value | 0x80));
    value >>= 7;
  }
  write_u8(static_cast<uint8_t>(value));
}

}  // namespace maxport
