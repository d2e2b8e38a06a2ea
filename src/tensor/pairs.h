// The strategy for walks that interleave two runs element by element, take such a mix apart, or read every second
// element: rope order without a transposition, and fused gate/up projections. Internal to tensor/.
#pragma once

#include "tensor/walk.h"

namespace maxport {

/// Copies the walk unchanged if it has one of those forms and elements of 1, 2 or 4 bytes; otherwise returns false and
/// does nothing.
bool copy_pairs(const Walk& walk);

}  // namespace maxport
