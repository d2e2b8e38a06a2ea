#include "tensor/cast.h"

#include "tensor/scalar_cast.h"

namespace maxport {
namespace {

bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

}  // namespace

bool can_cast(DType from, DType to) { return from == to || (!is_complex(from) && !is_complex(to)); }

void cast(DType from, ByteSpan in, DType to, MutableByteSpan out) {
  MAXPORT_CHECK(can_cast(from, to));
  const size_t count = in.size() / static_cast<size_t>(dtype_bytes(from));
  MAXPORT_CHECK(out.size() / static_cast<size_t>(dtype_bytes(to)) >= count);
  scalar_cast(from, in.data(), to, out.data(), count);
}

}  // namespace maxport
