#include "engine/leaf_reader.h"

#include <algorithm>
#include <cstring>

namespace maxport::engine {
namespace {

/// A region whose source elements are spread out is read in pieces: when less than 1/kSparse of a span is wanted.
constexpr int64_t kSparse = 2;
/// ... unless the gaps are so small that reading over them is cheaper than another call.
constexpr int64_t kSmallSpanBytes = int64_t{64} << 10;

/// The index of the axis with the largest source stride among those longer than 1, or -1.
int outermost(const StridedWalk& walk) {
  int best = -1;
  for (size_t i = 0; i < walk.extents.size(); ++i)
    if (walk.extents[i] > 1 &&
        (best < 0 || walk.source_strides[i] > walk.source_strides[static_cast<size_t>(best)]))
      best = static_cast<int>(i);
  return best;
}

/// Calls visit(begin, end) with spans of source elements that together hold the walk.
template <class Visit>
void dense_spans(StridedWalk walk, int64_t offset, int64_t element_bytes, Visit visit) {
  int64_t count = 1, end = offset + 1;
  for (size_t i = 0; i < walk.extents.size(); ++i) {
    count *= walk.extents[i];
    end += (walk.extents[i] - 1) * walk.source_strides[i];
  }
  const int axis = outermost(walk);
  if (axis < 0 || end - offset <= count * kSparse || (end - offset) * element_bytes <= kSmallSpanBytes) {
    visit(offset, end);
    return;
  }
  const auto a = static_cast<size_t>(axis);
  const int64_t steps = walk.extents[a], stride = walk.source_strides[a];
  walk.extents[a] = 1;
  for (int64_t i = 0; i < steps; ++i) dense_spans(walk, offset + i * stride, element_bytes, visit);
}

template <class T>
void fill_value(MutableByteSpan out, T value) {
  for (size_t at = 0; at + sizeof(T) <= out.size(); at += sizeof(T)) std::memcpy(out.data() + at, &value, sizeof value);
}

}  // namespace

Result<LeafReader> LeafReader::create(const plan::Plan& plan, const plan::Leaf& leaf, const TensorReader& tensors,
                                      DType save_dtype) {
  LeafReader reader(plan, leaf, tensors);
  reader.dtype_ = plan::stored_dtype(DType::kFloat32, save_dtype, leaf.arithmetic);
  bool first = true;
  int64_t linked = 0;
  for (const plan::Link& link : plan.links_of(leaf)) {
    const DType source = tensors.dtype(link.tensor);
    const DType dtype = plan::stored_dtype(source, save_dtype, leaf.arithmetic);
    if (!first && dtype != reader.dtype_)
      return fail(ErrorKind::kUnsupported, "{}: its sources would be stored as {} and as {}; convert with another save_dtype",
                  leaf.path, dtype_name(reader.dtype_), dtype_name(dtype));
    reader.dtype_ = dtype;
    first = false;
    linked += element_count(plan.walks[link.walk].extents);
  }
  reader.compute_dtype_ = save_dtype;
  reader.complete_ = linked == element_count(leaf.shape);
  reader.build_index();
  return reader;
}

void LeafReader::build_index() {
  const auto links = plan_->links_of(*leaf_);
  if (links.size() < 8) return;
  cells_.assign(leaf_->shape.size(), 1);
  for (const plan::Link& link : links) {
    const LinkGeometry geometry(*plan_, *leaf_, link);
    if (cell_.empty()) cell_ = geometry.bounds().shape;
    bool regular = geometry.bounds().shape == cell_;
    for (size_t axis = 0; regular && axis < cell_.size(); ++axis) {
      regular = geometry.bounds().origin[axis] % cell_[axis] == 0;
      cells_[axis] = std::max(cells_[axis], geometry.bounds().origin[axis] / cell_[axis] + 1);
    }
    if (!regular) {
      cell_.clear();
      return;
    }
  }
  if (element_count(cells_) != static_cast<int64_t>(links.size())) {
    cell_.clear();
    return;
  }
  by_cell_.assign(links.size(), 0);
  const std::vector<int64_t> strides = row_major_strides(cells_);
  for (uint32_t i = 0; i < links.size(); ++i) {
    const LinkGeometry geometry(*plan_, *leaf_, links[i]);
    int64_t cell = 0;
    for (size_t axis = 0; axis < cell_.size(); ++axis)
      cell += geometry.bounds().origin[axis] / cell_[axis] * strides[axis];
    by_cell_[static_cast<size_t>(cell)] = i;
  }
}

template <class Visit>
void LeafReader::for_links(const Box& box, Visit visit) const {
  if (cell_.empty()) {
    for (uint32_t i = 0; i < leaf_->link_count; ++i) visit(i);
    return;
  }
  const std::vector<int64_t> strides = row_major_strides(cells_);
  Box range = box;  // in cells
  for (size_t axis = 0; axis < cell_.size(); ++axis) {
    range.origin[axis] = box.origin[axis] / cell_[axis];
    const int64_t end = (box.origin[axis] + box.shape[axis] + cell_[axis] - 1) / cell_[axis];
    range.shape[axis] = std::min(end, cells_[axis]) - range.origin[axis];
  }
  if (range.empty()) return;
  std::vector<int64_t> at(cell_.size(), 0);
  for (bool more = true; more;) {
    int64_t cell = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) cell += (range.origin[axis] + at[axis]) * strides[axis];
    visit(by_cell_[static_cast<size_t>(cell)]);
    more = false;
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < range.shape[axis]) {
        more = true;
        break;
      }
      at[axis] = 0;
    }
  }
}

void LeafReader::plan_spans(const Box& box, std::vector<SourceWindow::Span>& spans, uint64_t& bytes) const {
  spans.clear();
  const auto links = plan_->links_of(*leaf_);
  for_links(box, [&](uint32_t i) {
    const int64_t element_bytes = dtype_bytes(tensors_->dtype(links[i].tensor));
    LinkGeometry(*plan_, *leaf_, links[i]).within(box, box.shape, [&](Region&& region) {
      dense_spans(std::move(region.walk), region.tensor_offset, element_bytes, [&](int64_t begin, int64_t end) {
        spans.push_back({i, begin, end, 0});
      });
    });
  });
  std::ranges::sort(spans, [](const auto& a, const auto& b) { return std::pair(a.link, a.begin) < std::pair(b.link, b.begin); });
  // Spans of one tensor that touch or overlap become one read.
  size_t kept = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (kept > 0 && spans[kept - 1].link == spans[i].link && spans[i].begin <= spans[kept - 1].end)
      spans[kept - 1].end = std::max(spans[kept - 1].end, spans[i].end);
    else
      spans[kept++] = spans[i];
  }
  spans.resize(kept);
  bytes = 0;
  for (SourceWindow::Span& span : spans) {
    span.buffer_offset = bytes;
    const int64_t size = (span.end - span.begin) * dtype_bytes(tensors_->dtype(links[span.link].tensor));
    bytes += (static_cast<uint64_t>(size) + 63) / 64 * 64;
  }
}

uint64_t LeafReader::window_bytes(const Box& box) const {
  std::vector<SourceWindow::Span> spans;
  uint64_t bytes = 0;
  plan_spans(box, spans, bytes);
  return bytes;
}

Result<> LeafReader::load(const Box& box, SourceWindow& window) const {
  plan_spans(box, window.spans_, window.used_);
  const MutableByteSpan buffer = window.buffer_.take(window.used_);
  const auto links = plan_->links_of(*leaf_);
  for (const SourceWindow::Span& span : window.spans_) {
    const uint32_t tensor = links[span.link].tensor;
    const auto element_bytes = static_cast<uint64_t>(dtype_bytes(tensors_->dtype(tensor)));
    const MutableByteSpan out = buffer.subspan(span.buffer_offset, static_cast<size_t>(span.end - span.begin) * element_bytes);
    MAXPORT_RETURN_IF_ERROR(tensors_->read(tensor, static_cast<uint64_t>(span.begin) * element_bytes, out));
  }
  return {};
}

// A region either lies in one span or was split by dense_spans along its outermost axis; then so is the copy.
void LeafReader::copy_region(uint32_t link, const Region& region, const SourceWindow& window, std::byte* out) const {
  const auto& spans = window.spans_;
  auto next = std::ranges::upper_bound(spans, std::pair(link, region.tensor_offset), {},
                                       [](const SourceWindow::Span& s) { return std::pair(s.link, s.begin); });
  MAXPORT_CHECK(next != spans.begin());
  const SourceWindow::Span& span = *std::prev(next);
  MAXPORT_CHECK(span.link == link && region.tensor_offset < span.end);
  const DType source = tensors_->dtype(plan_->links_of(*leaf_)[link].tensor);
  if (region.tensor_end() <= span.end) {
    const DType compute = leaf_->arithmetic.kind == models::Arithmetic::Kind::kCopy && source == dtype_ ? source
                          : plan::stored_dtype(source, compute_dtype_, {});
    const ElementOp op{source, compute, op_kind(leaf_->arithmetic.kind), leaf_->arithmetic.to_maxtext, dtype_};
    const std::byte* from = window.buffer_.content().data() + span.buffer_offset +
                            (region.tensor_offset - span.begin) * dtype_bytes(source);
    strided_copy(region.walk, op, from, out + region.box_offset * dtype_bytes(dtype_));
    return;
  }
  const auto axis = static_cast<size_t>(outermost(region.walk));
  Region part = region;
  part.walk.extents[axis] = 1;
  for (int64_t i = 0; i < region.walk.extents[axis]; ++i) {
    copy_region(link, part, window, out);
    part.tensor_offset += region.walk.source_strides[axis];
    part.box_offset += region.walk.target_strides[axis];
  }
}

void LeafReader::fill(const Box& box, std::span<const int64_t> extents, const SourceWindow& window,
                      MutableByteSpan out) const {
  const bool edge = !std::ranges::equal(box.shape, extents);
  if (edge || !complete_) {
    if (leaf_->fill && *leaf_->fill != 0) {
      MAXPORT_CHECK(dtype_ == DType::kFloat32);
      fill_value(out, *leaf_->fill);
    } else {
      std::ranges::fill(out, std::byte{0});
    }
  }
  for_links(box, [&](uint32_t i) {
    LinkGeometry(*plan_, *leaf_, plan_->links_of(*leaf_)[i]).within(box, extents, [&](Region&& region) {
      copy_region(i, region, window, out.data());
    });
  });
}

Result<> LeafReader::read(const Box& box, MutableByteSpan out) const {
  SourceWindow window;
  MAXPORT_RETURN_IF_ERROR(load(box, window));
  fill(box, box.shape, window, out);
  return {};
}

}  // namespace maxport::engine
