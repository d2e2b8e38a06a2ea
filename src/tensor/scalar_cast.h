// The reference conversion between any two types, one element at a time through a common wide value. Used where no
// table and no vector kernel serves the pair.
#pragma once

#include <cstddef>

#include "tensor/dtype.h"

namespace maxport {

/// As cast(), for `count` elements.
void scalar_cast(DType from, const std::byte* in, DType to, std::byte* out, size_t count);

}  // namespace maxport
