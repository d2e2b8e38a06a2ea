#include "zarr/byte_codecs.h"

#include <blosc.h>
#include <bzlib.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "zarr/blosc_frame.h"

namespace maxport::zarr {
namespace {

constexpr size_t kCrcBytes = 4;
static_assert(kCrcBytes <= kSpareBytes);

/// The kind of frame that is written without the library; nothing for what maxport itself does not ask for.
std::optional<FrameKind> frame_kind(const Codec& codec) {
  if (codec.level != 1 || codec.block_size != 0) return std::nullopt;
  if (codec.compressor == "lz4" && codec.shuffle == Shuffle::kBit) return FrameKind::kLz4;
  if (codec.compressor == "zstd" && codec.shuffle == (codec.type_size == 1 ? Shuffle::kNone : Shuffle::kByte)) return FrameKind::kHuffman;
  return std::nullopt;
}

Result<MutableByteSpan> encode_blosc(const Codec& codec, ByteSpan input, Buffer& buffer, Scratch& scratch) {
  const auto element = static_cast<size_t>(codec.type_size);
  const auto kind = frame_kind(codec);
  if (kind && can_encode_blosc_frame(*kind, input.size(), element)) {
    const MutableByteSpan out = buffer.take(blosc_frame_bound(input.size(), element) + kSpareBytes);
    return out.first(encode_blosc_frame(*kind, input, element, scratch, out));
  }
  if (input.size() > static_cast<size_t>(BLOSC_MAX_BUFFERSIZE))
    return fail(ErrorKind::kInvalidArgument, "blosc takes at most {} bytes, the chunk has {}", BLOSC_MAX_BUFFERSIZE,
                input.size());
  MutableByteSpan out = buffer.take(input.size() + BLOSC_MAX_OVERHEAD + kSpareBytes);
  const int size = blosc_compress_ctx(codec.level, static_cast<int>(codec.shuffle), static_cast<size_t>(codec.type_size),
                                      input.size(), input.data(), out.data(), out.size() - kSpareBytes, codec.compressor.c_str(),
                                      static_cast<size_t>(codec.block_size), 1);
  if (size <= 0)
    return fail(ErrorKind::kInternal, "blosc with {} failed to compress {} bytes (code {})", codec.compressor,
                input.size(), size);
  return out.first(static_cast<size_t>(size));
}

Result<> decode_blosc(ByteSpan input, MutableByteSpan out, Scratch& scratch) {
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t size, stated_size({.kind = CodecKind::kBlosc}, input));
  if (size != out.size())
    return fail(ErrorKind::kCorruptData, "blosc data holds {} bytes, expected {}", size, out.size());
  MAXPORT_ASSIGN_OR_RETURN(const bool done, decode_blosc_frame(input, out, scratch));
  if (done) return {};
  const int decoded = out.empty() ? 0 : blosc_decompress_ctx(input.data(), out.data(), out.size(), 1);
  if (decoded < 0 || static_cast<size_t>(decoded) != out.size())
    return fail(ErrorKind::kCorruptData, "blosc data of {} bytes does not decode (code {})", input.size(), decoded);
  return {};
}

Result<MutableByteSpan> encode_zstd(const Codec& codec, ByteSpan input, Buffer& buffer, Scratch& scratch) {
  ZSTD_CCtx* context = scratch.zstd_compressor();
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, codec.level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, codec.checksum);
  MutableByteSpan out = buffer.take(ZSTD_compressBound(input.size()) + kSpareBytes);
  const size_t size = ZSTD_compress2(context, out.data(), out.size() - kSpareBytes, input.data(), input.size());
  if (ZSTD_isError(size)) return fail(ErrorKind::kInternal, "zstd failed to compress: {}", ZSTD_getErrorName(size));
  return out.first(size);
}

/// A chunk is one frame and nothing else (formats.md 2.4); zstd itself would decode several and skip skippable ones.
Result<> decode_zstd(ByteSpan input, MutableByteSpan out, Scratch& scratch) {
  if (input.size() < 4 || load_le<uint32_t>(input.data()) != ZSTD_MAGICNUMBER)
    return fail(ErrorKind::kCorruptData, "{} bytes that do not begin with a zstd frame", input.size());
  const size_t frame = ZSTD_findFrameCompressedSize(input.data(), input.size());
  if (ZSTD_isError(frame)) return fail(ErrorKind::kCorruptData, "damaged zstd frame: {}", ZSTD_getErrorName(frame));
  if (frame != input.size())
    return fail(ErrorKind::kCorruptData, "{} bytes after the zstd frame of {} bytes", input.size() - frame, frame);
  const unsigned long long stated = ZSTD_getFrameContentSize(input.data(), input.size());
  if (stated != ZSTD_CONTENTSIZE_UNKNOWN && stated != out.size())
    return fail(ErrorKind::kCorruptData, "the zstd frame holds {} bytes, expected {}", stated, out.size());
  // An output of no bytes still needs a valid address.
  std::byte nothing;
  const size_t size = ZSTD_decompressDCtx(scratch.zstd_decompressor(), out.empty() ? &nothing : out.data(), out.size(),
                                          input.data(), input.size());
  if (ZSTD_isError(size)) return fail(ErrorKind::kCorruptData, "zstd: {}", ZSTD_getErrorName(size));
  if (size != out.size())
    return fail(ErrorKind::kCorruptData, "the zstd frame holds {} bytes, expected {}", size, out.size());
  return {};
}

/// One zlib or gzip stream. The library counts in 32 bits, so long inputs and outputs are fed in pieces.
Result<> decode_deflate(std::string_view name, int window_bits, ByteSpan input, MutableByteSpan out) {
  z_stream stream = {};
  if (inflateInit2(&stream, window_bits) != Z_OK) return fail(ErrorKind::kInternal, "{}: cannot start", name);
  constexpr size_t kPiece = size_t{1} << 30;
  // zlib wants somewhere to point at even when there is nothing left to write.
  std::byte spare;
  size_t read = 0, written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const size_t in = std::min(kPiece, input.size() - read), room = std::min(kPiece, out.size() - written);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data() + read));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(room ? out.data() + written : &spare);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    const size_t used = in - stream.avail_in, made = room - stream.avail_out;
    read += used;
    written += made;
    if (status == Z_OK && used == 0 && made == 0) break;
  }
  const std::string reason = stream.msg ? stream.msg : "more data than expected, or cut short";
  inflateEnd(&stream);
  if (status != Z_STREAM_END)
    return fail(ErrorKind::kCorruptData, "{} data does not decode to {} bytes: {}", name, out.size(), reason);
  if (read != input.size()) return fail(ErrorKind::kCorruptData, "{} bytes after the {} data", input.size() - read, name);
  if (written != out.size())
    return fail(ErrorKind::kCorruptData, "the {} data holds {} bytes, expected {}", name, written, out.size());
  return {};
}

Result<> decode_bzip2(ByteSpan input, MutableByteSpan out) {
  bz_stream stream = {};
  if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) return fail(ErrorKind::kInternal, "bz2: cannot start");
  constexpr size_t kPiece = size_t{1} << 30;
  std::byte spare;
  size_t read = 0, written = 0;
  int status = BZ_OK;
  while (status == BZ_OK) {
    const size_t in = std::min(kPiece, input.size() - read), room = std::min(kPiece, out.size() - written);
    stream.next_in = reinterpret_cast<char*>(const_cast<std::byte*>(input.data() + read));
    stream.avail_in = static_cast<unsigned>(in);
    stream.next_out = reinterpret_cast<char*>(room ? out.data() + written : &spare);
    stream.avail_out = static_cast<unsigned>(room);
    status = BZ2_bzDecompress(&stream);
    const size_t used = in - stream.avail_in, made = room - stream.avail_out;
    read += used;
    written += made;
    if (status == BZ_OK && used == 0 && made == 0) break;
  }
  BZ2_bzDecompressEnd(&stream);
  if (status != BZ_STREAM_END)
    return fail(ErrorKind::kCorruptData, "bz2 data does not decode to {} bytes (code {})", out.size(), status);
  if (read != input.size()) return fail(ErrorKind::kCorruptData, "{} bytes after the bz2 data", input.size() - read);
  if (written != out.size())
    return fail(ErrorKind::kCorruptData, "the bz2 data holds {} bytes, expected {}", written, out.size());
  return {};
}

Result<MutableByteSpan> encode_crc32c(ByteSpan input, Buffer& buffer) {
  MutableByteSpan out = buffer.take(input.size() + kCrcBytes + kSpareBytes).first(input.size() + kCrcBytes);
  if (!input.empty()) std::memcpy(out.data(), input.data(), input.size());
  store_le(crc32c(input), out.data() + input.size());
  return out;
}

Result<> decode_crc32c(ByteSpan input, MutableByteSpan out) {
  MAXPORT_ASSIGN_OR_RETURN(const ByteSpan content, crc32c_content(input));
  if (content.size() != out.size())
    return fail(ErrorKind::kCorruptData, "{} bytes before the CRC-32C, expected {}", content.size(), out.size());
  if (!out.empty()) std::memcpy(out.data(), content.data(), out.size());
  return {};
}

}  // namespace

MutableByteSpan append_crc32c(MutableByteSpan bytes) {
  store_le(crc32c(bytes), bytes.data() + bytes.size());
  return {bytes.data(), bytes.size() + kCrcBytes};
}

Result<ByteSpan> crc32c_content(ByteSpan input) {
  if (input.size() < kCrcBytes)
    return fail(ErrorKind::kCorruptData, "{} bytes, too short for a CRC-32C", input.size());
  const ByteSpan content = input.first(input.size() - kCrcBytes);
  const uint32_t stored = load_le<uint32_t>(input.data() + content.size()), computed = crc32c(content);
  if (stored != computed)
    return fail(ErrorKind::kCorruptData, "CRC-32C is {:08x}, stored is {:08x}: the data was changed after writing",
                computed, stored);
  return content;
}

bool is_byte_codec(CodecKind kind) {
  return kind != CodecKind::kTranspose && kind != CodecKind::kBytes && kind != CodecKind::kSharding;
}

std::string_view codec_name(CodecKind kind) {
  switch (kind) {
    case CodecKind::kTranspose: return "transpose";
    case CodecKind::kBytes: return "bytes";
    case CodecKind::kSharding: return "sharding_indexed";
    case CodecKind::kBlosc: return "blosc";
    case CodecKind::kZstd: return "zstd";
    case CodecKind::kGzip: return "gzip";
    case CodecKind::kZlib: return "zlib";
    case CodecKind::kBzip2: return "bz2";
    case CodecKind::kCrc32c: return "crc32c";
  }
  return "unknown";
}

Result<MutableByteSpan> encode_bytes(const Codec& codec, ByteSpan input, Buffer& buffer, Scratch& scratch) {
  switch (codec.kind) {
    case CodecKind::kBlosc: return encode_blosc(codec, input, buffer, scratch);
    case CodecKind::kZstd: return encode_zstd(codec, input, buffer, scratch);
    case CodecKind::kCrc32c: return encode_crc32c(input, buffer);
    default:
      return fail(ErrorKind::kUnsupported, "the codec {} is only read, not written", codec_name(codec.kind));
  }
}

Result<> decode_bytes(const Codec& codec, ByteSpan input, MutableByteSpan out, Scratch& scratch) {
  switch (codec.kind) {
    case CodecKind::kBlosc: return decode_blosc(input, out, scratch);
    case CodecKind::kZstd: return decode_zstd(input, out, scratch);
    case CodecKind::kGzip: return decode_deflate("gzip", MAX_WBITS + 16, input, out);
    case CodecKind::kZlib: return decode_deflate("zlib", MAX_WBITS, input, out);
    case CodecKind::kBzip2: return decode_bzip2(input, out);
    case CodecKind::kCrc32c: return decode_crc32c(input, out);
    default: return fail(ErrorKind::kInternal, "{} is not a codec of bytes", codec_name(codec.kind));
  }
}

Result<uint64_t> stated_size(const Codec& codec, ByteSpan input) {
  switch (codec.kind) {
    case CodecKind::kCrc32c:
      if (input.size() < kCrcBytes)
        return fail(ErrorKind::kCorruptData, "{} bytes, too short for a CRC-32C", input.size());
      return input.size() - kCrcBytes;
    case CodecKind::kBlosc: {
      size_t size = 0;
      if (blosc_cbuffer_validate(input.data(), input.size(), &size) != 0)
        return fail(ErrorKind::kCorruptData, "{} bytes that are not a blosc buffer of that size", input.size());
      return size;
    }
    case CodecKind::kZstd:
      if (const auto size = ZSTD_getFrameContentSize(input.data(), input.size());
          size != ZSTD_CONTENTSIZE_UNKNOWN && size != ZSTD_CONTENTSIZE_ERROR)
        return size;
      break;
    case CodecKind::kGzip:
      if (input.size() >= 18) return load_le<uint32_t>(input.data() + input.size() - 4);
      break;
    default: break;
  }
  return fail(ErrorKind::kUnsupported, "{} after another compressor, without a stated size", codec_name(codec.kind));
}

uint64_t largest_decoded_size(const Codec& codec, uint64_t encoded_bytes) {
  // A zstd block of 4 bytes can stand for 128 KiB, also inside blosc; deflate reaches 1032 for one; some 40 bytes of bz2
  // can hold a block of 900,000 that its run lengths turn into 46 million.
  uint64_t ratio = 1, base = 0;
  switch (codec.kind) {
    case CodecKind::kZstd:
    case CodecKind::kBlosc: ratio = 32768, base = 131072; break;
    case CodecKind::kGzip:
    case CodecKind::kZlib: ratio = 1032, base = 1032; break;
    case CodecKind::kBzip2: ratio = 1'200'000, base = 46'000'000; break;
    default: break;
  }
  uint64_t size;
  if (__builtin_mul_overflow(encoded_bytes, ratio, &size) || __builtin_add_overflow(size, base, &size))
    return std::numeric_limits<uint64_t>::max();
  return size;
}

}  // namespace maxport::zarr
