#include "zarr/blosc_frame.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "zarr/bitshuffle.h"
#include "zarr/byte_planes.h"

namespace maxport::zarr {
namespace {

constexpr size_t kHeaderBytes = 16;
constexpr size_t kWordBytes = 4;
/// Small enough for the nearest caches together with its planes; large enough for LZ4 to find repetitions, and for a
/// description of Huffman codes to be next to nothing.
constexpr size_t kLz4BlockBytes = size_t{64} << 10, kHuffmanBlockBytes = size_t{256} << 10;
constexpr int kLz4Acceleration = 9;

constexpr uint8_t kVersion = 2, kCompressorVersion = 1;
constexpr uint8_t kByteShuffle = 1, kPlainCopy = 2, kBitPlanes = 4, kUnsplit = 16;
constexpr int kCompressorShift = 5;
constexpr uint8_t kLz4 = 1, kZstd = 4;
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

/// LZ4 data of fewer bytes than the part; 0 when there is none.
size_t encode_lz4(ByteSpan part, Scratch& scratch, MutableByteSpan out) {
  const int size = static_cast<int>(part.size());
  const int packed = LZ4_compress_fast_extState(scratch.lz4_state(), reinterpret_cast<const char*>(part.data()),
                                                reinterpret_cast<char*>(out.data()), size, size - 1, kLz4Acceleration);
  return packed > 0 ? static_cast<size_t>(packed) : 0;
}

/// The parts of a block of bit planes, one after another. Returns their bytes.
size_t encode_bit_planes(ByteSpan block, size_t element_bytes, size_t parts, Scratch& scratch, MutableByteSpan out) {
  const MutableByteSpan planes = scratch.planes().take(block.size());
  bitshuffle(element_bytes, block, planes);
  const size_t part_bytes = block.size() / parts;
  size_t at = 0;
  for (size_t i = 0; i < parts; ++i) {
    const ByteSpan part = planes.subspan(i * part_bytes, part_bytes);
    const MutableByteSpan content = out.subspan(at + kWordBytes);
    size_t size = encode_lz4(part, scratch, content);
    if (size == 0) std::memcpy(content.data(), part.data(), size = part.size());
    store_le(static_cast<uint32_t>(size), out.data() + at);
    at += kWordBytes + size;
  }
  return at;
}

/// The same for byte planes. They are put where they lie when none can be coded, so that noise is moved no more.
size_t encode_byte_planes(ByteSpan block, size_t element_bytes, size_t parts, Scratch& scratch, MutableByteSpan out) {
  const size_t part_bytes = block.size() / parts, plane_bytes = block.size() / element_bytes;
  split_bytes(element_bytes, block, out.subspan(kWordBytes), parts > 1 ? plane_bytes + kWordBytes : plane_bytes);
  size_t at = 0;
  for (size_t i = 0; i < parts; ++i) {
    const ByteSpan part = out.subspan(i * (kWordBytes + part_bytes) + kWordBytes, part_bytes);
    const MutableByteSpan coded = scratch.planes().take(zstd::literals_frame_bound(part_bytes, plane_bytes));
    size_t size = zstd::encode_literals_frame(part, plane_bytes, scratch.literals(), coded);
    const ByteSpan content = size < part_bytes ? coded.first(size) : part;
    size = content.size();
    std::byte* const to = out.data() + at + kWordBytes;
    if (content.data() != to) std::memmove(to, content.data(), size);
    store_le(static_cast<uint32_t>(size), out.data() + at);
    at += kWordBytes + size;
  }
  return at;
}

Result<> decode_lz4(ByteSpan part, MutableByteSpan out) {
  const int size = LZ4_decompress_safe(reinterpret_cast<const char*>(part.data()), reinterpret_cast<char*>(out.data()),
                                       static_cast<int>(part.size()), static_cast<int>(out.size()));
  if (size < 0 || static_cast<size_t>(size) != out.size())
    return fail(ErrorKind::kCorruptData, "LZ4 data of {} bytes does not decode to {} (code {})", part.size(), out.size(), size);
  return {};
}

Result<> decode_zstd(ByteSpan part, MutableByteSpan out, Scratch& scratch) {
  if (zstd::decode_literals_frame(part, scratch.literals(), out)) return {};
  const size_t size = ZSTD_decompressDCtx(scratch.zstd_decompressor(), out.data(), out.size(), part.data(), part.size());
  if (ZSTD_isError(size)) return fail(ErrorKind::kCorruptData, "zstd: {}", ZSTD_getErrorName(size));
  if (size != out.size())
    return fail(ErrorKind::kCorruptData, "zstd data of {} bytes decodes to {}, expected {}", part.size(), size, out.size());
  return {};
}

Result<> decode_part(uint8_t compressor, ByteSpan part, MutableByteSpan out, Scratch& scratch) {
  if (part.size() == out.size()) {
    std::memcpy(out.data(), part.data(), part.size());
    return {};
  }
  return compressor == kLz4 ? decode_lz4(part, out) : decode_zstd(part, out, scratch);
}

/// The planes of one block, from its parts.
Result<> decode_block(uint8_t compressor, ByteSpan frame, size_t at, size_t parts, MutableByteSpan planes, Scratch& scratch) {
  const size_t part_bytes = planes.size() / parts;
  for (size_t part = 0; part < parts; ++part) {
    if (at > frame.size() || frame.size() - at < kWordBytes)
      return fail(ErrorKind::kCorruptData, "a block begins at byte {} of a frame of {}", at, frame.size());
    const uint32_t size = load_le<uint32_t>(frame.data() + at);
    at += kWordBytes;
    if (size > part_bytes || size > frame.size() - at)
      return fail(ErrorKind::kCorruptData, "a block has {} bytes at byte {} of a frame of {}, at most {} are possible", size,
                  at, frame.size(), part_bytes);
    MAXPORT_RETURN_IF_ERROR(
        decode_part(compressor, frame.subspan(at, size), planes.subspan(part * part_bytes, part_bytes), scratch));
    at += size;
  }
  return {};
}

uint8_t compressor_of(const Header& header) { return header.flags >> kCompressorShift; }

/// Ours to decode: a known compressor, planes of bits or bytes, sizes that fit each other.
bool is_our_kind(const Header& header, size_t frame_bytes, size_t out_bytes) {
  const bool bits = (header.flags & kBitPlanes) != 0, bytes = (header.flags & kByteShuffle) != 0;
  const size_t group = size_t{bits ? 8u : 1u} * header.element_bytes;
  if (bits ? bytes || !has_bitshuffle(header.element_bytes) : bytes && !has_byte_planes(header.element_bytes)) return false;
  return header.version == kVersion && header.compressor_version == kCompressorVersion && (header.flags & kPlainCopy) == 0 &&
         (compressor_of(header) == kLz4 || compressor_of(header) == kZstd) && header.bytes == out_bytes &&
         header.frame_bytes == frame_bytes && group > 0 && header.block_bytes > 0 && header.block_bytes % group == 0 &&
         header.bytes % group == 0 && header.block_bytes <= (uint32_t{1} << 26);
}

void join_planes(const Header& header, ByteSpan planes, MutableByteSpan block) {
  if (header.flags & kBitPlanes) bitunshuffle(header.element_bytes, planes, block);
  else if (header.flags & kByteShuffle) join_bytes(header.element_bytes, planes, block);
  else join_bytes(1, planes, block);
}

size_t block_bytes_of(FrameKind kind) { return kind == FrameKind::kLz4 ? kLz4BlockBytes : kHuffmanBlockBytes; }

uint8_t flags_of(FrameKind kind, size_t element_bytes) {
  if (kind == FrameKind::kLz4) return kBitPlanes | kLz4 << kCompressorShift;
  return static_cast<uint8_t>((element_bytes > 1 ? kByteShuffle : 0) | kZstd << kCompressorShift);
}

}  // namespace

size_t blosc_frame_bound(size_t bytes, size_t element_bytes) {
  const size_t blocks = (bytes + kLz4BlockBytes - 1) / kLz4BlockBytes;
  return kHeaderBytes + bytes + blocks * kWordBytes * (1 + element_bytes);
}

bool can_encode_blosc_frame(FrameKind kind, size_t bytes, size_t element_bytes) {
  if (bytes == 0 || blosc_frame_bound(bytes, element_bytes) >= size_t{1} << 31) return false;
  if (kind == FrameKind::kLz4) return has_bitshuffle(element_bytes) && bytes % (8 * element_bytes) == 0;
  return has_byte_planes(element_bytes) && bytes % element_bytes == 0;
}

size_t encode_blosc_frame(FrameKind kind, ByteSpan input, size_t element_bytes, Scratch& scratch, MutableByteSpan out) {
  const size_t block_bytes = std::min(block_bytes_of(kind), input.size());
  const size_t blocks = (input.size() + block_bytes - 1) / block_bytes;
  Header header{kVersion, kCompressorVersion, flags_of(kind, element_bytes), static_cast<uint8_t>(element_bytes),
                static_cast<uint32_t>(input.size()), static_cast<uint32_t>(block_bytes), 0};
  size_t at = kHeaderBytes + blocks * kWordBytes;
  scratch.literals().forget();
  for (size_t i = 0; i < blocks; ++i) {
    const ByteSpan block = input.subspan(i * block_bytes, std::min(block_bytes, input.size() - i * block_bytes));
    store_le(static_cast<uint32_t>(at), out.data() + kHeaderBytes + i * kWordBytes);
    const size_t parts = part_count(block.size(), block_bytes, element_bytes, true);
    const auto encode = kind == FrameKind::kLz4 ? encode_bit_planes : encode_byte_planes;
    at += encode(block, element_bytes, parts, scratch, out.subspan(at));
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
        decode_block(compressor_of(header), frame, load_le<uint32_t>(frame.data() + kHeaderBytes + i * kWordBytes), parts,
                     planes, scratch),
        "blosc"));
    join_planes(header, planes, out.subspan(begin, size));
  }
  return true;
}

}  // namespace maxport::zarr
