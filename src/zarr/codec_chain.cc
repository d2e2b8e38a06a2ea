#include "zarr/codec_chain.h"

#include <algorithm>
#include <numeric>

#include "zarr/byte_codecs.h"
#include "zarr/sharding.h"

namespace maxport::zarr {
namespace {

/// Dense little- or big-endian elements of the stored array; the source itself where it already is that.
ByteSpan stored_elements(const Chain& chain, DType dtype, const ElementSource& source, Scratch& scratch) {
  const auto bytes = static_cast<size_t>(element_count(chain.stored_shape) * dtype_bytes(dtype));
  ElementSource stored{source.data, permuted(source.strides, chain.axes)};
  const bool swap = swaps_bytes(*chain.array, dtype);
  if (!swap && is_dense(chain.stored_shape, stored.strides)) return {source.data, bytes};
  MutableByteSpan out = scratch.decoded().take(bytes);
  copy_elements(dtype, chain.stored_shape, stored, {out.data(), row_major_strides(chain.stored_shape)});
  if (swap) reverse_bytes(dtype, out);
  return out;
}

}  // namespace

Chain take_apart(std::span<const Codec> codecs, std::span<const int64_t> chunk_shape) {
  Chain chain;
  chain.axes.resize(chunk_shape.size());
  std::iota(chain.axes.begin(), chain.axes.end(), size_t{0});
  size_t next = 0;
  for (; codecs[next].kind == CodecKind::kTranspose; ++next) {
    std::vector<size_t> axes;
    for (int axis : codecs[next].order) axes.push_back(chain.axes[static_cast<size_t>(axis)]);
    chain.axes = std::move(axes);
  }
  chain.stored_shape = permuted(chunk_shape, chain.axes);
  chain.array = &codecs[next];
  chain.byte_codecs = codecs.subspan(next + 1);
  return chain;
}

std::vector<int64_t> permuted(std::span<const int64_t> values, std::span<const size_t> axes) {
  std::vector<int64_t> out;
  out.reserve(axes.size());
  for (size_t axis : axes) out.push_back(values[axis]);
  return out;
}

bool swaps_bytes(const Codec& bytes, DType dtype) {
  const bool native_is_big = std::endian::native == std::endian::big;
  return dtype_bytes(dtype) > 1 && bytes.big_endian != native_is_big;
}

Result<ByteSpan> encode_chain(std::span<const Codec> codecs, DType dtype, std::span<const int64_t> shape,
                              const ElementSource& source, Scratch& scratch) {
  const Chain chain = take_apart(codecs, shape);
  if (chain.array->kind == CodecKind::kBytes)
    return encode_byte_codecs(chain.byte_codecs, stored_elements(chain, dtype, source, scratch), scratch);
  const ElementSource stored{source.data, permuted(source.strides, chain.axes)};
  return encode_shard(*chain.array->sharding, dtype, chain.stored_shape, stored, scratch);
}

Result<ByteSpan> encode_byte_codecs(std::span<const Codec> codecs, ByteSpan bytes, Scratch& scratch) {
  if (codecs.empty()) return bytes;
  MAXPORT_ASSIGN_OR_RETURN(const MutableByteSpan first, encode_bytes(codecs[0], bytes, scratch.first(), scratch));
  Buffer* buffers[] = {&scratch.second(), &scratch.first()};
  MutableByteSpan out = first;
  for (size_t i = 1, turn = 0; i < codecs.size(); ++i) {
    if (codecs[i].kind == CodecKind::kCrc32c && codecs[i - 1].kind != CodecKind::kCrc32c) {
      out = append_crc32c(out);
      continue;
    }
    MAXPORT_ASSIGN_OR_RETURN(out, encode_bytes(codecs[i], out, *buffers[turn++ % 2], scratch));
  }
  return out;
}

Result<ByteSpan> encode_byte_codecs_in_place(std::span<const Codec> codecs, MutableByteSpan bytes, Scratch& scratch) {
  if (codecs.size() == 1 && codecs[0].kind == CodecKind::kCrc32c) return append_crc32c(bytes);
  return encode_byte_codecs(codecs, bytes, scratch);
}

Result<ByteSpan> decode_byte_codecs(std::span<const Codec> codecs, ByteSpan encoded, uint64_t limit, Scratch& scratch) {
  Buffer* buffers[] = {&scratch.first(), &scratch.second()};
  for (size_t i = codecs.size(); i-- > 0;) {
    if (codecs[i].kind == CodecKind::kCrc32c) {
      MAXPORT_ASSIGN_OR_RETURN(encoded, crc32c_content(encoded));
      continue;
    }
    MAXPORT_ASSIGN_OR_RETURN(const uint64_t size, stated_size(codecs[i], encoded));
    if (size > limit || size > largest_decoded_size(codecs[i], encoded.size()))
      return fail(ErrorKind::kCorruptData, "{} bytes of {} claim to hold {} bytes; at most {} are possible here",
                  encoded.size(), codec_name(codecs[i].kind), size, limit);
    MutableByteSpan out = buffers[i % 2]->take(size);
    MAXPORT_RETURN_IF_ERROR(decode_bytes(codecs[i], encoded, out, scratch));
    encoded = out;
  }
  return encoded;
}

}  // namespace maxport::zarr
