// A MaxText leaf as a lazy tensor: its dtype and shape are known at once, any region of it is made from the source
// tensors when it is asked for, and nothing is kept.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "engine/region.h"
#include "engine/tensor_reader.h"
#include "plan/plan.h"
#include "tensor/element_op.h"

namespace maxport::engine {

/// Source bytes in memory, as much as one box of a leaf needs. Reused from box to box, so that its memory is allocated
/// once a thread.
class SourceWindow {
 public:
  uint64_t bytes() const { return used_; }

 private:
  friend class LeafReader;
  struct Span {
    uint32_t link;        // index within the leaf
    int64_t begin, end;   // elements of the tensor
    uint64_t buffer_offset;
  };
  std::vector<Span> spans_;  // sorted by link, then begin
  Buffer buffer_;
  uint64_t used_ = 0;
};

/// Immutable; one may serve several threads, each with a window of its own.
class LeafReader {
 public:
  /// Fails with kUnsupported when the leaf's sources have different stored types that lead to different leaf types.
  static Result<LeafReader> create(const plan::Plan& plan, const plan::Leaf& leaf, const TensorReader& tensors,
                                   DType save_dtype);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return leaf_->shape; }

  /// Bytes of source data that load() would hold for this box.
  uint64_t window_bytes(const Box& box) const;
  /// Reads what the box needs, in sequential reads as large as its layout in the source allows.
  Result<> load(const Box& box, SourceWindow& window) const;
  /// Makes the elements of `box`, which lies in the box that was loaded, as a dense row-major array of
  /// `extents` (>= box.shape; elements beyond the box are the leaf's fill value, or zero).
  void fill(const Box& box, std::span<const int64_t> extents, const SourceWindow& window, MutableByteSpan out) const;
  /// load() and fill() in one.
  Result<> read(const Box& box, MutableByteSpan out) const;

 private:
  LeafReader(const plan::Plan& plan, const plan::Leaf& leaf, const TensorReader& tensors)
      : plan_(&plan), leaf_(&leaf), tensors_(&tensors) {}

  void build_index();
  /// Calls visit(i) for each link that may meet the box.
  template <class Visit>
  void for_links(const Box& box, Visit visit) const;
  void plan_spans(const Box& box, std::vector<SourceWindow::Span>& spans, uint64_t& bytes) const;
  void copy_region(uint32_t link, const Region& region, const SourceWindow& window, std::byte* out) const;

  const plan::Plan* plan_;
  const plan::Leaf* leaf_;
  const TensorReader* tensors_;
  DType dtype_ = DType::kFloat32;
  DType compute_dtype_ = DType::kFloat32;
  bool complete_ = false;  // links fill every element, so nothing needs to be cleared first

  // Where the links of the leaf begin: a dense grid when all have one shape, which is the rule.
  Shape cell_;                      // extent of a link along each axis, empty when they differ
  Shape cells_;                     // number of links along each axis
  std::vector<uint32_t> by_cell_;   // link at each grid position
};

}  // namespace maxport::engine
