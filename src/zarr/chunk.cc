#include "zarr/chunk.h"

#include "zarr/byte_codecs.h"
#include "zarr/byte_source.h"
#include "zarr/codec_chain.h"
#include "zarr/region.h"

namespace maxport::zarr {
namespace {

static_assert(kChunkSpareBytes == kSpareBytes);

Result<> check_raw_size(const ArraySpec& spec, size_t bytes) {
  if (static_cast<int64_t>(bytes) == chunk_bytes(spec)) return {};
  return fail(ErrorKind::kInvalidArgument, "a chunk of {} {} elements is {} bytes, not {}",
              shape_text(spec.chunk_shape), dtype_name(spec.dtype), chunk_bytes(spec), bytes);
}

}  // namespace

Result<ByteSpan> encode_chunk(const ArraySpec& spec, ByteSpan raw, Scratch& scratch) {
  MAXPORT_RETURN_IF_ERROR(check_raw_size(spec, raw.size()));
  const Codec& first = spec.codecs.front();
  if (first.kind == CodecKind::kBytes && !swaps_bytes(first, spec.dtype))
    return encode_byte_codecs(std::span(spec.codecs).subspan(1), raw, scratch);
  return encode_chain(spec.codecs, spec.dtype, spec.chunk_shape,
                      {raw.data(), row_major_strides(spec.chunk_shape)}, scratch);
}

Result<ByteSpan> encode_chunk_in_place(const ArraySpec& spec, MutableByteSpan raw, Scratch& scratch) {
  MAXPORT_RETURN_IF_ERROR(check_raw_size(spec, raw.size()));
  const Codec& first = spec.codecs.front();
  if (first.kind == CodecKind::kBytes && !swaps_bytes(first, spec.dtype))
    return encode_byte_codecs_in_place(std::span(spec.codecs).subspan(1), raw, scratch);
  return encode_chunk(spec, raw, scratch);
}

Result<> decode_chunk(const ArraySpec& spec, ByteSpan encoded, MutableByteSpan raw, Scratch& scratch) {
  MAXPORT_RETURN_IF_ERROR(check_raw_size(spec, raw.size()));
  MemorySource source(encoded);
  return decode_region({.dtype = spec.dtype, .fill = {}, .fill_missing = false}, spec.codecs, spec.chunk_shape, source,
                       Box::whole(spec.chunk_shape),
                       {raw.data(), row_major_strides(spec.chunk_shape)}, scratch);
}

}  // namespace maxport::zarr
