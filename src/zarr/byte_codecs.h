// The codecs that turn bytes into bytes: compressors and checksums, each a pure function of its input.
#pragma once

#include "zarr/array_spec.h"
#include "zarr/scratch.h"

namespace maxport::zarr {

/// The name in Zarr v3 metadata, for messages.
std::string_view codec_name(CodecKind kind);

/// True for codecs that map bytes to bytes.
bool is_byte_codec(CodecKind kind);

/// Bytes that may be written after what encode_bytes returns.
inline constexpr size_t kSpareBytes = 4;

/// Applies one codec; the result lies in `buffer`, with kSpareBytes of it after its end.
Result<MutableByteSpan> encode_bytes(const Codec& codec, ByteSpan input, Buffer& buffer, Scratch& scratch);

/// Undoes one codec and fills `out` exactly: any other decoded size is kCorruptData.
Result<> decode_bytes(const Codec& codec, ByteSpan input, MutableByteSpan out, Scratch& scratch);

/// What encode_bytes makes with CRC-32C, in place: `bytes` is followed by kSpareBytes of the same memory.
MutableByteSpan append_crc32c(MutableByteSpan bytes);

/// Checks a CRC-32C at the end of `input` and returns the bytes that it covers.
Result<ByteSpan> crc32c_content(ByteSpan input);

/// The size that `input` decodes to, as the encoded bytes themselves say; kUnsupported where they do not (a zstd frame
/// without content size, zlib, bz2). Needed only for a codec that another compressor comes before.
Result<uint64_t> stated_size(const Codec& codec, ByteSpan input);

/// The largest size that `encoded_bytes` can possibly decode to, so that a few bytes cannot claim gigabytes of memory.
uint64_t largest_decoded_size(const Codec& codec, uint64_t encoded_bytes);

}  // namespace maxport::zarr
