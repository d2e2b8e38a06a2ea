// A codec chain taken apart for one chunk shape, and its encoding direction.
#pragma once

#include "zarr/array_spec.h"
#include "zarr/scratch.h"
#include "zarr/elements.h"

namespace maxport::zarr {

/// The three stages of a chain. Refers to the codecs it was made from.
struct Chain {
  std::vector<size_t> axes;            ///< all transposes as one: axis i of the stored array is axis axes[i] of the chunk
  Shape stored_shape;                  ///< of the chunk after the transposes
  const Codec* array = nullptr;        ///< kBytes or kSharding
  std::span<const Codec> byte_codecs;  ///< what follows; nothing after kSharding
};

/// The chain must have passed parse_metadata or come from make_array_spec.
Chain take_apart(std::span<const Codec> codecs, std::span<const int64_t> chunk_shape);

/// `values[axes[i]]` for each i.
std::vector<int64_t> permuted(std::span<const int64_t> values, std::span<const size_t> axes);

/// True when numbers of this type are stored with their bytes reversed.
bool swaps_bytes(const Codec& bytes, DType dtype);

/// Encodes one chunk or sub-chunk of `shape`, whose elements lie at `source`. The result lies in `scratch`, or is the
/// source itself when that is dense and no codec changes it.
Result<ByteSpan> encode_chain(std::span<const Codec> codecs, DType dtype, std::span<const int64_t> shape,
                              const ElementSource& source, Scratch& scratch);

/// Applies codecs of bytes, one after the other. The second form may write kSpareBytes (byte_codecs.h) after `bytes`,
/// which saves a copy when a checksum is all there is to do.
Result<ByteSpan> encode_byte_codecs(std::span<const Codec> codecs, ByteSpan bytes, Scratch& scratch);
Result<ByteSpan> encode_byte_codecs_in_place(std::span<const Codec> codecs, MutableByteSpan bytes, Scratch& scratch);

/// Undoes codecs of bytes, the last first, taking the size of each result from the encoded bytes; nothing may decode to
/// more than `limit` bytes. The result lies in `scratch` or in `encoded`.
Result<ByteSpan> decode_byte_codecs(std::span<const Codec> codecs, ByteSpan encoded, uint64_t limit, Scratch& scratch);

}  // namespace maxport::zarr
