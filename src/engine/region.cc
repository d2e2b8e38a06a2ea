#include "engine/region.h"

#include <algorithm>

namespace maxport::engine {

std::vector<int64_t> tensor_strides(const plan::Plan& plan, const plan::Leaf& leaf) {
  std::vector<int64_t> out(leaf.shape.size(), kOtherTensor);
  if (leaf.link_count == 0) return out;
  const plan::Walk& walk = plan.walks[plan.links_of(leaf)[0].walk];
  const std::vector<int64_t> strides = row_major_strides(leaf.shape);
  for (size_t i = 0; i < walk.extents.size(); ++i) {
    if (walk.extents[i] == 1) continue;
    for (size_t axis = 0; axis < strides.size(); ++axis) {
      if (leaf.shape[axis] == 1 || strides[axis] > walk.maxtext_strides[i]) continue;
      out[axis] = std::min(out[axis], walk.huggingface_strides[i]);
      break;
    }
  }
  return out;
}

ElementOp::Kind op_kind(models::Arithmetic::Kind kind) {
  switch (kind) {
    case models::Arithmetic::Kind::kCopy: return ElementOp::Kind::kCopy;
    case models::Arithmetic::Kind::kMultiply: return ElementOp::Kind::kMultiply;
    case models::Arithmetic::Kind::kAdd: return ElementOp::Kind::kAdd;
  }
  return ElementOp::Kind::kCopy;
}

int64_t Region::element_count() const {
  int64_t count = 1;
  for (int64_t extent : walk.extents) count *= extent;
  return count;
}

int64_t Region::tensor_end() const {
  int64_t last = tensor_offset;
  for (size_t i = 0; i < walk.extents.size(); ++i) last += (walk.extents[i] - 1) * walk.source_strides[i];
  return last + 1;
}

LinkGeometry::LinkGeometry(const plan::Plan& plan, const plan::Leaf& leaf, const plan::Link& link)
    : axes_(leaf.shape.size()), bounds_(Box::whole(leaf.shape)), tensor_offset_(link.huggingface_offset) {
  const plan::Walk& walk = plan.walks[link.walk];
  const std::vector<int64_t> strides = row_major_strides(leaf.shape);
  int64_t rest = link.maxtext_offset;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    bounds_.origin[axis] = rest / strides[axis];
    bounds_.shape[axis] = 1;
    rest %= strides[axis];
  }
  for (size_t i = 0; i < walk.extents.size(); ++i) {
    if (walk.extents[i] == 1) continue;
    // The axis whose stride is the largest that does not exceed the index's; axes of extent 1 share strides and come
    // earlier, so the last such axis is the right one.
    size_t axis = strides.size();
    for (size_t a = 0; a < strides.size(); ++a)
      if (leaf.shape[a] > 1 && strides[a] <= walk.maxtext_strides[i]) {
        axis = a;
        break;
      }
    MAXPORT_CHECK(axis < strides.size());
    const int64_t step = walk.maxtext_strides[i] / strides[axis];
    axes_[axis].push_back({walk.extents[i], step, walk.huggingface_strides[i]});
    bounds_.shape[axis] += (walk.extents[i] - 1) * step;
  }
  for (auto& digits : axes_)
    std::ranges::sort(digits, [](const Digit& a, const Digit& b) { return a.step > b.step; });
}

// Positions begin..end of an axis, relative to the link's first: whole steps of the outermost digit stay together, the
// ragged ends are cut further.
void LinkGeometry::cut(const std::vector<Digit>& digits, size_t digit, int64_t begin, int64_t end, Ranges& current,
                       std::vector<Ranges>& out) {
  if (begin >= end) return;
  if (digit == digits.size()) {
    if (begin <= 0 && end > 0) out.push_back(current);
    return;
  }
  const Digit& d = digits[digit];
  int64_t inner = 1;  // positions that the digits below span
  for (size_t i = digit + 1; i < digits.size(); ++i) inner += (digits[i].extent - 1) * digits[i].step;
  // Values v of this digit whose positions v*step .. v*step + inner meet begin..end, and those that lie inside.
  const auto floor_div = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
  const int64_t first = std::max<int64_t>(0, floor_div(begin - inner, d.step) + 1);
  const int64_t last = std::min(d.extent, floor_div(end - 1, d.step) + 1);
  const auto inside = [&](int64_t v) { return v * d.step >= begin && v * d.step + inner <= end; };
  for (int64_t v = first; v < last;) {
    int64_t next = v + 1;
    if (inside(v)) {
      while (next < last && inside(next)) ++next;
      current.push_back({v, next});
      cut(digits, digit + 1, 0, inner, current, out);
    } else {
      current.push_back({v, next});
      cut(digits, digit + 1, begin - v * d.step, end - v * d.step, current, out);
    }
    current.pop_back();
    v = next;
  }
}

void LinkGeometry::within(const Box& box, std::span<const int64_t> box_extents,
                          const std::function<void(Region&&)>& visit) const {
  const size_t rank = axes_.size();
  std::vector<std::vector<Ranges>> choices(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t begin = box.origin[axis] - bounds_.origin[axis];
    Ranges current;
    cut(axes_[axis], 0, begin, begin + box.shape[axis], current, choices[axis]);
    if (choices[axis].empty()) return;
  }
  const std::vector<int64_t> box_strides = row_major_strides(box_extents);
  std::vector<size_t> at(rank, 0);
  for (bool more = true; more;) {
    Region region{{}, tensor_offset_, 0};
    for (size_t axis = 0; axis < rank; ++axis) {
      int64_t position = bounds_.origin[axis] - box.origin[axis];
      const Ranges& ranges = choices[axis][at[axis]];
      for (size_t i = 0; i < ranges.size(); ++i) {
        const Digit& d = axes_[axis][i];
        position += ranges[i].begin * d.step;
        region.tensor_offset += ranges[i].begin * d.tensor_stride;
        region.walk.extents.push_back(ranges[i].end - ranges[i].begin);
        region.walk.source_strides.push_back(d.tensor_stride);
        region.walk.target_strides.push_back(d.step * box_strides[axis]);
      }
      region.box_offset += position * box_strides[axis];
    }
    visit(std::move(region));
    more = false;
    for (size_t axis = rank; axis-- > 0;) {
      if (++at[axis] < choices[axis].size()) {
        more = true;
        break;
      }
      at[axis] = 0;
    }
  }
}

}  // namespace maxport::engine
