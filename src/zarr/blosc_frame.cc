#include "zarr/blosc_frame.h"

#include <lz4.h>

#include <algorithm>
#include <cstring>

#include "zarr/bitshuffle.h"

namespace maxport::zarr {
namespace {

constexpr size_t kHeaderBytes = 16;
constexpr size_t kWordBytes = 4;
/// Small enough for the first-level caches together with its planes, large enough for LZ4 to find repetitions.
constexpr size_t kBlockBytes = size_t{64} << 10;

constexpr uint8_t kVersion = 2, kLz4Version = 1;
constexpr uint8_t kByteShuffle = 1, kPlainCopy = 2, kBitPlanes = 4, kUnsplit = 16;
constexpr int kCompressorShift = 5;
constexpr uint8_t kLz4 = 1;
/// Blocks are split only into parts of at least this size (blosc's MIN_BUFFERSIZE).
constexpr size_t kSmallestPart = 128;

struct Header {
  uint8_t version, compressor_version, flags, element_bytes;
  uint32_t bytes, block_bytes, frame_bytes;
};

Header read_header(ByteSpan frame) {
  const auto octet = [&](size_t i) { return static_cast<uint8_t>(frame[i]); };
  return {octet(0), octet(1), octet(2), octet(3), load_le<uint32_t>(frame.data() + 4), load_le<uint32_t>(frame.data() + 8),
          load_le<uint32_t>(frame.data() + 12)};
}

void write_header(const Header& header, MutableByteSpan out) {
  const uint8_t octets[] = {header.version, header.compressor_version, header.flags, header.element_bytes};
  std::memcpy(out.data(), octets, sizeof octets);
  store_le(header.bytes, out.data() + 4);
  store_le(header.block_bytes, out.data() + 8);
  store_le(header.frame_bytes, out.data() + 12);
}

size_t part_count(size_t block, size_t full_block, size_t element_bytes, bool split) {
  const bool parts = split && block == full_block && full_block / element_bytes >= kSmallestPart;
  return parts ? element_bytes : 1;
}

/// One part as its size and its bytes; as they are when LZ4 does not make them fewer. Returns what it takes of `out`.
size_t encode_part(ByteSpan part, int acceleration, void* state, MutableByteSpan out) {
  const auto* from = reinterpret_cast<const char*>(part.data());
  const int size = static_cast<int>(part.size());
  int packed = LZ4_compress_fast_extState(state, from, reinterpret_cast<char*>(out.data() + kWordBytes), size, size - 1,
                                          acceleration);
  if (packed <= 0) {
    std::memcpy(out.data() + kWordBytes, part.data(), part.size());
    packed = size;
  }
  store_le(static_cast<uint32_t>(packed), out.data());
  return kWordBytes + static_cast<size_t>(packed);
}

Result<> decode_part(ByteSpan part, MutableByteSpan out) {
  if (part.size() == out.size()) {
    std::memcpy(out.data(), part.data(), part.size());
    return {};
  }
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(part.data()), reinterpret_cast<char*>(out.data()),
                                       static_cast<int>(part.size()), static_cast<int>(out.size()));
  if (size < 0 || static_cast<size_t>(size) != out.size())
    return fail(ErrorKind::kCorruptData, "LZ4 data of {} bytes does not decode to {} (code {})", part.size(), out.size(), size);
  return {};
}

/// The planes of one block, from its parts.
Result<> decode_block(ByteSpan frame, size_t at, size_t parts, MutableByteSpan planes) {
  const size_t part_bytes = planes.size() / parts;
  for (size_t part = 0; part < parts; ++part) {
    if (at > frame.size() || frame.size() - at < kWordBytes)
      return fail(ErrorKind::kCorruptData, "a block begins at byte {} of a frame of {}", at, frame.size());
    const uint32_t size = load_le<uint32_t>(frame.data() + at);
    at += kWordBytes;
    if (size > part_bytes || size > frame.size() - at)
      return fail(ErrorKind::kCorruptData, "a block has {} bytes at byte {} of a frame of {}, at most {} are possible", size,
                  at, frame.size(), part_bytes);
    MAXPORT_RETURN_IF_ERROR(decode_part(frame.subspan(at, size), planes.subspan(part * part_bytes, part_bytes)));
    at += size;
  }
  return {};
}

/// Ours to decode: LZ4, bit planes, sizes that fit each other.
bool is_our_kind(const Header& header, size_t frame_bytes, size_t out_bytes) {
  const size_t group = size_t{8} * header.element_bytes;
  return header.version == kVersion && header.compressor_version == kLz4Version && (header.flags & kByteShuffle) == 0 &&
         (header.flags & kPlainCopy) == 0 && (header.flags & kBitPlanes) != 0 &&
         header.flags >> kCompressorShift == kLz4 && has_bitshuffle(header.element_bytes) && header.bytes == out_bytes &&
         header.frame_bytes == frame_bytes && header.block_bytes > 0 && header.block_bytes % group == 0 &&
         header.bytes % group == 0 && header.block_bytes <= (uint32_t{1} << 26);
}

}  // namespace

size_t blosc_frame_bound(size_t bytes, size_t element_bytes) {
  const size_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  return kHeaderBytes + bytes + blocks * kWordBytes * (1 + element_bytes);
}

bool can_encode_blosc_frame(size_t bytes, size_t element_bytes) {
  return has_bitshuffle(element_bytes) && bytes > 0 && bytes % (8 * element_bytes) == 0 &&
         blosc_frame_bound(bytes, element_bytes) < size_t{1} << 31;
}

size_t encode_blosc_frame(ByteSpan input, size_t element_bytes, int acceleration, Scratch& scratch, MutableByteSpan out) {
  const size_t block_bytes = std::min(kBlockBytes, input.size());
  const size_t blocks = (input.size() + block_bytes - 1) / block_bytes;
  Header header{kVersion, kLz4Version, static_cast<uint8_t>(kBitPlanes | kLz4 << kCompressorShift), static_cast<uint8_t>(element_bytes),
                static_cast<uint32_t>(input.size()), static_cast<uint32_t>(block_bytes), 0};
  size_t at = kHeaderBytes + blocks * kWordBytes;
  for (size_t i = 0; i < blocks; ++i) {
    const ByteSpan block = input.subspan(i * block_bytes, std::min(block_bytes, input.size() - i * block_bytes));
    const MutableByteSpan planes = scratch.planes().take(block.size());
    bitshuffle(element_bytes, block, planes);
    store_le(static_cast<uint32_t>(at), out.data() + kHeaderBytes + i * kWordBytes);
    const size_t parts = part_count(block.size(), block_bytes, element_bytes, true), part_bytes = block.size() / parts;
    for (size_t part = 0; part < parts; ++part)
      at += encode_part(planes.subspan(part * part_bytes, part_bytes), acceleration, scratch.lz4_state(), out.subspan(at));
  }
  if (at >= kHeaderBytes + input.size()) {
    header.flags |= kPlainCopy;
    at = kHeaderBytes + input.size();
    std::memcpy(out.data() + kHeaderBytes, input.data(), input.size());
  }
  header.frame_bytes = static_cast<uint32_t>(at);
  write_header(header, out);
  return at;
}

Result<bool> decode_blosc_frame(ByteSpan frame, MutableByteSpan out, Scratch& scratch) {
  if (frame.size() < kHeaderBytes) return false;
  const Header header = read_header(frame);
  if (out.empty() || !is_our_kind(header, frame.size(), out.size())) return false;
  const size_t blocks = (out.size() + header.block_bytes - 1) / header.block_bytes;
  if ((frame.size() - kHeaderBytes) / kWordBytes < blocks)
    return fail(ErrorKind::kCorruptData, "a blosc frame of {} bytes has no room for {} blocks", frame.size(), blocks);
  for (size_t i = 0; i < blocks; ++i) {
    const size_t begin = i * header.block_bytes, size = std::min<size_t>(header.block_bytes, out.size() - begin);
    const MutableByteSpan planes = scratch.planes().take(size);
    const size_t parts = part_count(size, header.block_bytes, header.element_bytes, (header.flags & kUnsplit) == 0);
    MAXPORT_RETURN_IF_ERROR(with_context(
        decode_block(frame, load_le<uint32_t>(frame.data() + kHeaderBytes + i * kWordBytes), parts, planes), "blosc"));
    bitunshuffle(header.element_bytes, planes, out.subspan(begin, size));
  }
  return true;
}

}  // namespace maxport::zarr
