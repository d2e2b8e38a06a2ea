// Any bytes as a chunk of some array: decoding ends without touching what is not its own, whatever the codecs. The first
// byte chooses the array.
#include <vector>

#include "zarr/chunk.h"
#include "zarr/random_spec.h"

namespace {

/// What maxport writes and what TensorStore can write, then random chains.
std::vector<maxport::zarr::ArraySpec> specs() {
  using namespace maxport;
  using namespace maxport::zarr;
  std::vector<ArraySpec> out;
  const Shape shape = {8, 16};
  for (const Compression compression : {Compression::kNone, Compression::kZstd, Compression::kBlosc, Compression::kLz4})
    out.push_back(*make_array_spec(Version::kV3, DType::kBfloat16, shape, shape, compression));
  for (const CodecKind kind : {CodecKind::kZstd, CodecKind::kBlosc, CodecKind::kGzip, CodecKind::kZlib, CodecKind::kBzip2}) {
    out.push_back(*make_array_spec(Version::kV2, DType::kBfloat16, shape, shape, Compression::kNone));
    out.back().codecs.push_back({.kind = kind});
  }
  Random random(1);
  while (out.size() < 256) out.push_back(random_spec(random));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace maxport;
  using namespace maxport::zarr;
  static const std::vector<ArraySpec> kSpecs = specs();
  if (size == 0) return 0;
  const ArraySpec& spec = kSpecs[data[0]];
  // The encoded bytes end where their buffer ends, so that reading beyond them is seen.
  const Bytes encoded(reinterpret_cast<const std::byte*>(data) + 1, reinterpret_cast<const std::byte*>(data) + size);
  Bytes raw(static_cast<size_t>(chunk_bytes(spec)));
  Scratch scratch;
  (void)decode_chunk(spec, encoded, raw, scratch);
  return 0;
}
