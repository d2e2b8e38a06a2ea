// The strategy for walks that run along one group of axes in the source and along another in the target. Internal to
// tensor/.
#pragma once

#include "tensor/walk.h"

namespace maxport {

/// A transposition generalised: `rows` are the axes that are contiguous in the target (outermost first), `columns`
/// those contiguous in the source. Neither need be equally spaced on the other side: rope order and head splits are row
/// lists. `outer` is all that is left.
struct Transposition {
  AxisList rows, columns, outer;
  int64_t row_count = 1, column_count = 1;
};

/// Groups the axes of a walk; false if one side has no axis of unit stride, or both have the same.
bool find_transposition(const Walk& walk, Transposition& out);

void copy_transposed(const Transposition& axes, const Walk& walk, const ElementOp& op);

}  // namespace maxport
