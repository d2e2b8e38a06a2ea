#include "tensor/cast.h"

#include <cstring>

#include "tensor/convert_kernels.h"
#include "tensor/scalar_cast.h"

namespace maxport {
namespace {

bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

template <class T>
void look_up(const std::byte* in, const std::byte* table, std::byte* out, size_t count) {
  for (size_t i = 0; i < count; ++i)
    std::memcpy(out + i * sizeof(T), table + std::to_integer<size_t>(in[i]) * sizeof(T), sizeof(T));
}

/// From a type of one byte: converts its 256 codes first, then looks every element up.
void table_cast(DType from, const std::byte* in, DType to, std::byte* out, size_t count) {
  std::byte codes[256], table[256 * sizeof(uint64_t)];
  for (size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::byte>(i);
  scalar_cast(from, codes, to, table, 256);
  switch (dtype_bytes(to)) {
    case 1: return look_up<uint8_t>(in, table, out, count);
    case 2: return look_up<uint16_t>(in, table, out, count);
    case 4: return look_up<uint32_t>(in, table, out, count);
    default: return look_up<uint64_t>(in, table, out, count);
  }
}

/// Below this many elements the table costs more than it saves.
constexpr size_t kWorthATable = 512;

}  // namespace

bool can_cast(DType from, DType to) { return from == to || (!is_complex(from) && !is_complex(to)); }

void cast(DType from, ByteSpan in, DType to, MutableByteSpan out) {
  MAXPORT_CHECK(can_cast(from, to));
  const size_t count = in.size() / static_cast<size_t>(dtype_bytes(from));
  MAXPORT_CHECK(out.size() / static_cast<size_t>(dtype_bytes(to)) >= count);
  if (count == 0) return;
  if (from == to) {
    std::memcpy(out.data(), in.data(), count * static_cast<size_t>(dtype_bytes(from)));
  } else if (const ElementOp op = ElementOp::convert(from, to); const ElementKernel kernel = vector_kernel(op)) {
    kernel(op, in.data(), out.data(), count);
  } else if (dtype_bytes(from) == 1 && count >= kWorthATable) {
    table_cast(from, in.data(), to, out.data(), count);
  } else {
    scalar_cast(from, in.data(), to, out.data(), count);
  }
}

}  // namespace maxport
