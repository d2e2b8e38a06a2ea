// Codecs on chunks of bfloat16 weights drawn from a normal distribution of deviation 0.02: bytes a second of raw data, and
// how much smaller the chunk becomes ("ratio"). Blosc also with other block sizes than the library's own.
#include <benchmark/benchmark.h>

#include <random>

#include "tensor/cast.h"
#include "zarr/chunk.h"

namespace maxport::zarr {
namespace {

constexpr int64_t kChunkElements = int64_t{1} << 20;

Bytes weights() {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> values(kChunkElements);
  for (float& value : values) value = normal(random);
  Bytes out(2 * kChunkElements);
  cast(DType::kFloat32, std::as_bytes(std::span(values)), DType::kBfloat16, out);
  return out;
}

ArraySpec spec_of(Compression compression, int64_t block_size) {
  ArraySpec spec = *make_array_spec(Version::kV3, DType::kBfloat16, {kChunkElements}, {kChunkElements}, compression);
  for (Codec& codec : spec.codecs)
    if (codec.kind == CodecKind::kBlosc) codec.block_size = block_size;
  return spec;
}

void report(benchmark::State& state, size_t encoded_bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * 2 * kChunkElements);
  state.counters["ratio"] = 2.0 * kChunkElements / static_cast<double>(encoded_bytes);
}

void encode(benchmark::State& state, Compression compression) {
  const ArraySpec spec = spec_of(compression, state.range(0) << 10);
  const Bytes raw = weights();
  Scratch scratch;
  size_t size = 0;
  for (auto _ : state) size = encode_chunk(spec, raw, scratch)->size();
  report(state, size);
}

void decode(benchmark::State& state, Compression compression) {
  const ArraySpec spec = spec_of(compression, state.range(0) << 10);
  Bytes raw = weights();
  Scratch scratch;
  const ByteSpan encoded = *encode_chunk(spec, raw, scratch);
  const Bytes stored(encoded.begin(), encoded.end());
  for (auto _ : state) MAXPORT_CHECK(decode_chunk(spec, stored, raw, scratch).has_value());
  report(state, stored.size());
}

BENCHMARK_CAPTURE(encode, none, Compression::kNone)->Arg(0);
BENCHMARK_CAPTURE(encode, zstd, Compression::kZstd)->Arg(0);
BENCHMARK_CAPTURE(encode, blosc_block_kib, Compression::kBlosc)->Arg(0)->RangeMultiplier(2)->Range(8, 2048);
BENCHMARK_CAPTURE(decode, none, Compression::kNone)->Arg(0);
BENCHMARK_CAPTURE(decode, zstd, Compression::kZstd)->Arg(0);
BENCHMARK_CAPTURE(decode, blosc_block_kib, Compression::kBlosc)->Arg(0)->RangeMultiplier(2)->Range(8, 2048);

}  // namespace
}  // namespace maxport::zarr
