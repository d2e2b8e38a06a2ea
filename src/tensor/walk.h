// A strided walk brought into the form that the copying strategies work on. Internal to tensor/.
#pragma once

#include <array>
#include <span>

#include "tensor/shape.h"
#include "tensor/strided_copy.h"

namespace maxport {

/// One axis; strides in bytes.
struct Axis {
  int64_t extent;
  int64_t source;
  int64_t target;
};

/// At most kMaxRank axes without the heap.
class AxisList {
 public:
  void push_back(const Axis& axis) { axes_[size_++] = axis; }
  void pop_back() { --size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Axis& operator[](size_t i) { return axes_[i]; }
  const Axis& operator[](size_t i) const { return axes_[i]; }
  Axis& back() { return axes_[size_ - 1]; }
  const Axis& back() const { return axes_[size_ - 1]; }
  Axis* begin() { return axes_.data(); }
  Axis* end() { return axes_.data() + size_; }
  const Axis* begin() const { return axes_.data(); }
  const Axis* end() const { return axes_.data() + size_; }

 private:
  std::array<Axis, kMaxRank> axes_;
  size_t size_ = 0;
};

struct Walk {
  AxisList axes;  ///< outermost first: target strides descend and are not negative, no extent is 1, none can be merged
  const std::byte* source;
  std::byte* target;
  int64_t source_bytes, target_bytes;  ///< element sizes; for a plain copy several elements may have become one
  bool empty = false;
};

Walk normalized(const StridedWalk& walk, const ElementOp& op, const std::byte* source, std::byte* target);

/// Calls visit(source, target) for every index of `axes`, the last axis fastest.
template <class Visit>
void for_each_index(const AxisList& axes, const std::byte* source, std::byte* target, Visit visit) {
  std::array<int64_t, kMaxRank> index{};
  while (true) {
    visit(source, target);
    size_t k = axes.size();
    for (; k > 0; --k) {
      const Axis& axis = axes[k - 1];
      source += axis.source, target += axis.target;
      if (++index[k - 1] < axis.extent) break;
      source -= axis.source * axis.extent, target -= axis.target * axis.extent;
      index[k - 1] = 0;
    }
    if (k == 0) return;
  }
}

}  // namespace maxport
