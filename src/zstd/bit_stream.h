// Streams of bits in little-endian bytes, the first bit lowest. Huffman codes and states are written front to back and read
// back to front; a last bit of 1 marks where the stream ends (RFC 8878, 4.1).
#pragma once

#include <bit>

#include "base/bytes.h"

namespace maxport::zstd {

/// Writes up to 8 bytes beyond the end it reaches.
class BitWriter {
 public:
  explicit BitWriter(std::byte* out) : out_(out) {}

  /// Takes up to 57 bits between two calls of flush().
  void add(uint64_t value, unsigned bits) {
    held_ |= value << count_;
    count_ += bits;
  }
  void flush() {
    store_le(held_, out_);
    out_ += count_ >> 3;
    held_ >>= count_ & 56;
    count_ &= 7;
  }
  void write(uint64_t value, int bits) {
    add(value, static_cast<unsigned>(bits));
    flush();
  }
  /// Zeros up to the next whole byte.
  void fill_byte() {
    count_ = (count_ + 7) & ~7u;
    flush();
  }
  /// Puts the mark and fills the last byte.
  void finish() {
    add(1, 1);
    fill_byte();
  }
  std::byte* end() const { return out_; }

 private:
  std::byte* out_;
  uint64_t held_ = 0;
  unsigned count_ = 0;
};

/// Reads front to back; what lies beyond the end reads as zeros.
class ForwardBits {
 public:
  explicit ForwardBits(ByteSpan bytes) : bytes_(bytes) {}

  uint32_t read(int bits) {
    uint32_t value = 0;
    for (int i = 0; i < bits; ++i, ++at_)
      if (at_ / 8 < bytes_.size()) value |= (static_cast<uint32_t>(bytes_[at_ / 8]) >> (at_ % 8) & 1) << i;
    return value;
  }
  bool overrun() const { return at_ > 8 * bytes_.size(); }
  size_t bytes_used() const { return (at_ + 7) / 8; }

 private:
  ByteSpan bytes_;
  size_t at_ = 0;
};

/// Reads back to front, for streams of few bits; what lies before the beginning reads as zeros.
class BackwardBits {
 public:
  explicit BackwardBits(ByteSpan bytes) : bytes_(bytes) {
    const unsigned last = bytes.empty() ? 0 : static_cast<unsigned>(bytes.back());
    left_ = last == 0 ? -1 : static_cast<int64_t>(8 * bytes.size()) - 9 + std::bit_width(last);
  }

  uint32_t read(int bits) {
    uint32_t value = 0;
    for (int i = 0; i < bits; ++i) {
      --left_;
      value = value << 1 | (left_ < 0 ? 0 : static_cast<uint32_t>(bytes_[static_cast<size_t>(left_) / 8]) >> (left_ % 8) & 1);
    }
    return value;
  }
  /// More was read than there is, or the mark is missing.
  bool overrun() const { return left_ < 0; }

 private:
  ByteSpan bytes_;
  int64_t left_;
};

}  // namespace maxport::zstd
