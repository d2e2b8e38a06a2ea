#include "ocdbt/frame.h"

#include <zstd.h>

#include <algorithm>
#include <memory>

namespace maxport::ocdbt {
namespace {

constexpr size_t kCrcBytes = 4;
// Magic, length, version and compression as one byte each, CRC.
constexpr size_t kMinFrameBytes = 4 + 8 + 1 + 1 + kCrcBytes;
constexpr size_t kLengthOffset = 4;

/// A block of four bytes (three of header, one to repeat) stands for at most 128 KiB.
constexpr uint64_t kMaxExpansion = 32768;

struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

std::unexpected<Error> too_large(std::string_view what, uint64_t size, uint64_t max_bytes) {
  return fail(ErrorKind::kCorruptData, "{}: the zstd frame decodes to {} bytes or more, at most {} are allowed", what,
              size, max_bytes);
}

Result<> decompress_known_size(ByteSpan input, uint64_t size, std::string_view what, Bytes& out) {
  out.resize(size);
  std::byte nothing{};
  const size_t decoded = ZSTD_decompress(out.empty() ? &nothing : out.data(), out.size(), input.data(), input.size());
  if (ZSTD_isError(decoded)) return fail(ErrorKind::kCorruptData, "{}: zstd: {}", what, ZSTD_getErrorName(decoded));
  if (decoded != size)
    return fail(ErrorKind::kCorruptData, "{}: the zstd frame holds {} bytes but states {}", what, decoded, size);
  return {};
}

/// A frame that does not state its size: the output grows with what is really there.
Result<> decompress_unknown_size(ByteSpan input, std::string_view what, uint64_t max_bytes, Bytes& out) {
  const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  if (!context) return fail(ErrorKind::kResourceLimit, "{}: no memory to decompress", what);
  ZSTD_inBuffer source{input.data(), input.size(), 0};
  size_t filled = 0;
  out.clear();
  for (;;) {
    if (filled == out.size()) {
      if (filled >= max_bytes) return too_large(what, filled, max_bytes);
      out.resize(std::min<uint64_t>(max_bytes, std::max<uint64_t>(filled * 2, 4096)));
    }
    ZSTD_outBuffer target{out.data(), out.size(), filled};
    const size_t left = ZSTD_decompressStream(context.get(), &target, &source);
    if (ZSTD_isError(left)) return fail(ErrorKind::kCorruptData, "{}: zstd: {}", what, ZSTD_getErrorName(left));
    const bool stuck = target.pos == filled && target.pos < target.size && source.pos == source.size;
    filled = target.pos;
    if (left == 0) break;
    if (stuck) return fail(ErrorKind::kCorruptData, "{}: the zstd frame is cut off", what);
  }
  out.resize(filled);
  return {};
}

/// Exactly one zstd frame; zstd itself would also take several, and skip skippable ones.
Result<> decompress(ByteSpan input, std::string_view what, uint64_t max_bytes, Bytes& out) {
  if (input.size() < 4 || load_le<uint32_t>(input.data()) != ZSTD_MAGICNUMBER)
    return fail(ErrorKind::kCorruptData, "{}: the compressed body does not begin with a zstd frame", what);
  const size_t frame = ZSTD_findFrameCompressedSize(input.data(), input.size());
  if (ZSTD_isError(frame)) return fail(ErrorKind::kCorruptData, "{}: zstd: {}", what, ZSTD_getErrorName(frame));
  if (frame != input.size())
    return fail(ErrorKind::kCorruptData, "{}: {} bytes follow the zstd frame of {} bytes", what, input.size() - frame,
                frame);
  const unsigned long long size = ZSTD_getFrameContentSize(input.data(), input.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN) return decompress_unknown_size(input, what, max_bytes, out);
  if (size > max_bytes) return too_large(what, size, max_bytes);
  if (size / kMaxExpansion > input.size())
    return fail(ErrorKind::kCorruptData, "{}: the zstd frame of {} bytes states {} bytes, more than it can hold", what,
                input.size(), size);
  return decompress_known_size(input, size, what, out);
}

Result<Bytes> compress(ByteSpan body, int level) {
  const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  if (!context) return fail(ErrorKind::kResourceLimit, "no memory to compress {} bytes", body.size());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  Bytes out(ZSTD_compressBound(body.size()));
  const size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), body.data(), body.size());
  if (ZSTD_isError(size)) return fail(ErrorKind::kInternal, "zstd failed to compress: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

}  // namespace

Result<Bytes> encode_frame(uint32_t magic, ByteSpan body, std::optional<int> zstd_level) {
  Bytes compressed;
  if (zstd_level) {
    MAXPORT_ASSIGN_OR_RETURN(compressed, compress(body, *zstd_level));
    body = compressed;
  }
  ByteWriter frame;
  frame.bytes().reserve(kMinFrameBytes + body.size());
  frame.write_be32(magic);
  frame.write_le64(kMinFrameBytes + body.size());
  frame.write_varint(0);
  frame.write_varint(zstd_level ? 1 : 0);
  frame.write_bytes(body);
  frame.write_le32(crc32c(frame.bytes()));
  return frame.take();
}

Result<ByteSpan> decode_frame(ByteSpan frame, uint32_t magic, std::string_view what, Bytes& keep,
                              uint64_t max_body_bytes) {
  if (frame.size() < kMinFrameBytes)
    return fail(ErrorKind::kCorruptData, "{} of {} bytes, expected at least {}", what, frame.size(), kMinFrameBytes);
  ByteReader reader(frame.first(frame.size() - kCrcBytes), what);
  MAXPORT_ASSIGN_OR_RETURN(const uint32_t found_magic, reader.read_be32());
  if (found_magic != magic)
    return fail(ErrorKind::kCorruptData, "{} begins with {:08x}, expected {:08x}", what, found_magic, magic);
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t length, reader.read_le64());
  if (length != frame.size())
    return fail(ErrorKind::kCorruptData, "{} states at offset {} that it has {} bytes, but there are {}", what,
                kLengthOffset, length, frame.size());
  const uint32_t stored = load_le<uint32_t>(frame.data() + frame.size() - kCrcBytes);
  const uint32_t computed = crc32c(frame.first(frame.size() - kCrcBytes));
  if (stored != computed)
    return fail(ErrorKind::kCorruptData, "{}: its bytes have the CRC-32C {:08x}, but {:08x} is stored at offset {}",
                what, computed, stored, frame.size() - kCrcBytes);
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t version, reader.read_varint(32));
  if (version != 0) return fail(ErrorKind::kCorruptData, "{} has format version {}, expected 0", what, version);
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t compression, reader.read_varint(32));
  if (compression > 1)
    return fail(ErrorKind::kCorruptData, "{} has compression method {}, expected 0 (none) or 1 (zstd)", what,
                compression);
  MAXPORT_ASSIGN_OR_RETURN(const ByteSpan body, reader.read_bytes(reader.remaining()));
  if (compression == 0) return body;
  MAXPORT_RETURN_IF_ERROR(decompress(body, what, max_body_bytes, keep));
  return ByteSpan(keep);
}

}  // namespace maxport::ocdbt
