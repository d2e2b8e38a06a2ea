// Transposition of a small tile in registers, for elements of 1, 2, 4, 8 or 16 bytes.
#pragma once

#include <cstddef>

namespace maxport {

/// out[c * out_stride + r * element_bytes] = rows[r][offset + c * element_bytes] for every r < row_count, c < columns.
/// Strides and offsets are in bytes. Reads and writes nothing else; needs no alignment.
struct TransposeTile {
  const std::byte* const* rows;
  size_t row_count;
  size_t offset;
  size_t columns;
  std::byte* out;
  size_t out_stride;
  /// Rows that will be read next, `columns` of each from `next_offset` on; they are fetched meanwhile. None at the end.
  const std::byte* const* next_rows = nullptr;
  size_t next_count = 0;
  size_t next_offset = 0;
};
using TransposeKernel = void (*)(const TransposeTile& tile);

/// The kernel for this processor and element size.
TransposeKernel transpose_kernel(size_t element_bytes);

/// Copies `run_bytes` from `in + i * in_stride` to `runs[i]` for every i < count: a finished tile to its places.
using ScatterKernel = void (*)(const std::byte* in, size_t in_stride, size_t run_bytes, std::byte* const* runs,
                               size_t count);
ScatterKernel scatter_kernel();

}  // namespace maxport
