// Vector kernels for the element operations between the types that weights come in, chosen for the processor at run
// time.
#pragma once

#include "tensor/element_op.h"

namespace maxport {

/// The vector kernel for `op`, null if there is none. There is one from any of float32, bfloat16, float16,
/// float8_e4m3fn and float8_e5m2 to any of them, but operations only among the first three, and rounding of the input
/// only from float32 to bfloat16. Its results are those of scalar_cast() and one float32 operation, bit for bit.
ElementKernel vector_kernel(const ElementOp& op);

}  // namespace maxport
