// Throughput of the element kernels and strided walks beside memcpy of the same bytes. "bytes" counts what is read plus
// what is written, so memcpy's figure is the bound for all.
#include <benchmark/benchmark.h>

#include <cstring>

#include "tensor/cast.h"
#include "tensor/strided_copy.h"

namespace maxport {
namespace {

constexpr int64_t kElements = 1 << 21;  // of 2 bytes: blocks of 4 MiB, as the engine moves

Bytes filled(int64_t size) {
  Bytes out(static_cast<size_t>(size));
  // Ordinary numbers in every type: subnormal ones are slow to compute with and do not occur in weights.
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = i % 2 == 0 ? static_cast<std::byte>((i * 2654435761u) >> 13) : std::byte{0x3C};
  return out;
}

void count_bytes(benchmark::State& state, const Bytes& source, const Bytes& target) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(source.size() + target.size()));
}

void BM_memcpy(benchmark::State& state) {
  const Bytes source = filled(state.range(0));
  Bytes target(source.size());
  for (auto _ : state) {
    std::memcpy(target.data(), source.data(), source.size());
    benchmark::ClobberMemory();
  }
  count_bytes(state, source, target);
}
BENCHMARK(BM_memcpy)->Arg(1 << 15)->Arg(1 << 20)->Arg(1 << 22)->Arg(1 << 23)->Arg(1 << 26);

void apply_op(benchmark::State& state, const ElementOp& op) {
  const Bytes source = filled(kElements * dtype_bytes(op.source));
  Bytes target(static_cast<size_t>(kElements * dtype_bytes(op.target)));
  for (auto _ : state) {
    apply(op, source, target);
    benchmark::ClobberMemory();
  }
  count_bytes(state, source, target);
}

void BM_cast(benchmark::State& state, DType from, DType to) { apply_op(state, ElementOp::convert(from, to)); }
BENCHMARK_CAPTURE(BM_cast, bf16_f32, DType::kBfloat16, DType::kFloat32);
BENCHMARK_CAPTURE(BM_cast, f32_bf16, DType::kFloat32, DType::kBfloat16);
BENCHMARK_CAPTURE(BM_cast, f16_f32, DType::kFloat16, DType::kFloat32);
BENCHMARK_CAPTURE(BM_cast, f32_f16, DType::kFloat32, DType::kFloat16);
BENCHMARK_CAPTURE(BM_cast, f16_bf16, DType::kFloat16, DType::kBfloat16);
BENCHMARK_CAPTURE(BM_cast, bf16_f16, DType::kBfloat16, DType::kFloat16);
BENCHMARK_CAPTURE(BM_cast, e4m3fn_bf16, DType::kFloat8E4m3fn, DType::kBfloat16);
BENCHMARK_CAPTURE(BM_cast, e4m3fn_f32, DType::kFloat8E4m3fn, DType::kFloat32);
BENCHMARK_CAPTURE(BM_cast, e5m2_bf16, DType::kFloat8E5m2, DType::kBfloat16);
BENCHMARK_CAPTURE(BM_cast, bf16_e4m3fn, DType::kBfloat16, DType::kFloat8E4m3fn);
BENCHMARK_CAPTURE(BM_cast, e8m0_f32, DType::kFloat8E8m0fnu, DType::kFloat32);
BENCHMARK_CAPTURE(BM_cast, f32_e3m4, DType::kFloat32, DType::kFloat8E3m4);
BENCHMARK_CAPTURE(BM_cast, i64_f32, DType::kInt64, DType::kFloat32);

void BM_multiply(benchmark::State& state, DType dtype) {
  apply_op(state, {dtype, dtype, ElementOp::Kind::kMultiply, 0.088388346f, dtype});
}
BENCHMARK_CAPTURE(BM_multiply, bf16, DType::kBfloat16);
BENCHMARK_CAPTURE(BM_multiply, f32, DType::kFloat32);

void walk_block(benchmark::State& state, const StridedWalk& walk, const ElementOp& op) {
  int64_t count = 1;
  for (int64_t extent : walk.extents) count *= extent;
  const Bytes source = filled(count * dtype_bytes(op.source));
  Bytes target(static_cast<size_t>(count * dtype_bytes(op.target)));
  for (auto _ : state) {
    strided_copy(walk, op, source.data(), target.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state, source, target);
}

StridedWalk transposition(int64_t rows, int64_t columns) { return {{columns, rows}, {1, columns}, {rows, 1}}; }

void BM_transpose(benchmark::State& state, DType from, DType to) {
  walk_block(state, transposition(state.range(0), state.range(1)), ElementOp::convert(from, to));
}
void shapes(benchmark::internal::Benchmark* benchmark) {
  const std::pair<int64_t, int64_t> kShapes[] = {{128, 64},   {128, 4096},  {512, 4096},  {1024, 2048}, {4096, 64},
                                                 {4096, 512}, {1024, 4096}, {4096, 4096}, {1000, 1100}, {151, 4093}};
  for (auto [rows, columns] : kShapes)
    benchmark->Args({rows, columns});
}
BENCHMARK_CAPTURE(BM_transpose, bf16, DType::kBfloat16, DType::kBfloat16)->Apply(shapes);
BENCHMARK_CAPTURE(BM_transpose, f32, DType::kFloat32, DType::kFloat32)->Apply(shapes);
BENCHMARK_CAPTURE(BM_transpose, fp8, DType::kFloat8E4m3fn, DType::kFloat8E4m3fn)->Apply(shapes);
BENCHMARK_CAPTURE(BM_transpose, f32_bf16, DType::kFloat32, DType::kBfloat16)->Apply(shapes);
BENCHMARK_CAPTURE(BM_transpose, bf16_f32, DType::kBfloat16, DType::kFloat32)->Apply(shapes);

void BM_transpose_multiply(benchmark::State& state) {
  walk_block(state, transposition(state.range(0), state.range(1)),
             {DType::kBfloat16, DType::kBfloat16, ElementOp::Kind::kMultiply, 0.088388346f, DType::kBfloat16});
}
BENCHMARK(BM_transpose_multiply)->Apply(shapes);

// Source [heads, 2, 64, emb], target [emb, heads, 64, 2] and back.
void BM_rope_transposed(benchmark::State& state, bool to_target) {
  const int64_t heads = 8, half = 64, emb = state.range(0);
  StridedWalk walk{{emb, heads, half, 2}, {1, 2 * half * emb, emb, half * emb}, {heads * half * 2, half * 2, 2, 1}};
  if (!to_target) std::swap(walk.source_strides, walk.target_strides);
  walk_block(state, walk, ElementOp::copy(DType::kBfloat16));
}
BENCHMARK_CAPTURE(BM_rope_transposed, to_maxtext, true)->Arg(1024)->Arg(4096);
BENCHMARK_CAPTURE(BM_rope_transposed, to_hf, false)->Arg(1024)->Arg(4096);

// Source [rows, 2, 64], target [rows, 64, 2] and back.
void BM_rope_rows(benchmark::State& state, bool to_target) {
  const int64_t rows = 16384, half = 64;
  StridedWalk walk{{rows, half, 2}, {2 * half, 1, half}, {2 * half, 2, 1}};
  if (!to_target) std::swap(walk.source_strides, walk.target_strides);
  walk_block(state, walk, ElementOp::copy(DType::kBfloat16));
}
BENCHMARK_CAPTURE(BM_rope_rows, to_maxtext, true);
BENCHMARK_CAPTURE(BM_rope_rows, to_hf, false);

// Every second element of a row, as one of two interleaved projections is read (or written).
void BM_every_second(benchmark::State& state, bool read) {
  const int64_t count = 1 << 20;
  StridedWalk walk{{count}, {2}, {1}};
  if (!read) std::swap(walk.source_strides, walk.target_strides);
  const Bytes source = filled(count * 4);
  Bytes target(static_cast<size_t>(count * 4));
  for (auto _ : state) {
    strided_copy(walk, ElementOp::copy(DType::kBfloat16), source.data(), target.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * count * 6);
}
BENCHMARK_CAPTURE(BM_every_second, read, true);
BENCHMARK_CAPTURE(BM_every_second, write, false);

// Slices: rows of one matrix into rows of another.
void BM_rows(benchmark::State& state) {
  const int64_t run = state.range(0), rows = kElements / run;
  walk_block(state, {{rows, run}, {run, 1}, {run, 1}}, ElementOp::copy(DType::kBfloat16));
}
BENCHMARK(BM_rows)->Arg(4096);

void BM_swapped_rows(benchmark::State& state) {
  const int64_t run = state.range(0), rows = 64, outer = kElements / run / rows;
  const StridedWalk walk{{outer, rows, run}, {run, outer * run, 1}, {rows * run, run, 1}};
  walk_block(state, walk, ElementOp::copy(DType::kBfloat16));
}
BENCHMARK(BM_swapped_rows)->Arg(2)->Arg(8)->Arg(64)->Arg(1024);

// A convolution kernel: [out, in, 14, 14] to [14, 14, in, out], and [channels, 4] to [4, channels].
void BM_vision_patch(benchmark::State& state) {
  const int64_t out = 1152, in = 3, patch = 196;
  walk_block(state, {{patch, in, out}, {1, patch, in * patch}, {in * out, out, 1}}, ElementOp::copy(DType::kBfloat16));
}
BENCHMARK(BM_vision_patch);
void BM_conv_channels(benchmark::State& state) {
  walk_block(state, transposition(8192, 4), ElementOp::copy(DType::kBfloat16));
}
BENCHMARK(BM_conv_channels);

}  // namespace
}  // namespace maxport
