// Codecs on chunks of bfloat16 weights drawn from a normal distribution of deviation 0.02: bytes a second of raw data, and
// how much smaller the chunk becomes ("ratio").
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

ArraySpec spec_of(Compression compression) {
  return *make_array_spec(Version::kV3, DType::kBfloat16, {kChunkElements}, {kChunkElements}, compression);
}

void report(benchmark::State& state, size_t encoded_bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * 2 * kChunkElements);
  state.counters["ratio"] = 2.0 * kChunkElements / static_cast<double>(encoded_bytes);
}

void encode(benchmark::State& state, Compression compression) {
  const ArraySpec spec = spec_of(compression);
  const Bytes raw = weights();
  Scratch scratch;
  size_t size = 0;
  for (auto _ : state) size = encode_chunk(spec, raw, scratch)->size();
  report(state, size);
}

void decode(benchmark::State& state, Compression compression) {
  const ArraySpec spec = spec_of(compression);
  Bytes raw = weights();
  Scratch scratch;
  const ByteSpan encoded = *encode_chunk(spec, raw, scratch);
  const Bytes stored(encoded.begin(), encoded.end());
  for (auto _ : state) MAXPORT_CHECK(decode_chunk(spec, stored, raw, scratch).has_value());
  report(state, stored.size());
}

BENCHMARK_CAPTURE(encode, none, Compression::kNone);
BENCHMARK_CAPTURE(encode, blosc, Compression::kBlosc);
BENCHMARK_CAPTURE(encode, lz4, Compression::kLz4);
BENCHMARK_CAPTURE(encode, zstd, Compression::kZstd);
BENCHMARK_CAPTURE(decode, none, Compression::kNone);
BENCHMARK_CAPTURE(decode, blosc, Compression::kBlosc);
BENCHMARK_CAPTURE(decode, lz4, Compression::kLz4);
BENCHMARK_CAPTURE(decode, zstd, Compression::kZstd);

}  // namespace
}  // namespace maxport::zarr
