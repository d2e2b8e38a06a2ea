#include "pieces.h"

#include <algorithm>

#include "tensor/strided_copy.h"

namespace maxport::python {
namespace {

constexpr int64_t kPieceBytes = int64_t{64} << 20;

class PieceReader {
 public:
  PieceReader(const NamedTensor& tensor, const Box& whole, MutableByteSpan out, const std::function<bool()>& go_on)
      : tensor_(tensor), whole_(whole), strides_(row_major_strides(whole.shape)),
        size_(dtype_bytes(tensor.lazy->dtype())), out_(out), go_on_(go_on) {}

  Result<> read(const Box& box) const {
    size_t axis = 0;
    while (axis < box.shape.size() && granules(box, axis) <= 1) ++axis;
    const int64_t bytes = element_count(box.shape) * size_;
    if (bytes <= kPieceBytes || axis == box.shape.size()) return read_piece(box);
    const int64_t granule = tensor_.granule[axis];
    const int64_t rows = std::max<int64_t>(kPieceBytes / (bytes / box.shape[axis]), 1);
    for (int64_t begin = box.origin[axis], end = begin + box.shape[axis]; begin < end;) {
      const int64_t cut = std::max((begin + rows) / granule, begin / granule + 1) * granule;
      Box part = box;
      part.origin[axis] = begin;
      part.shape[axis] = std::min(cut, end) - begin;
      MAXPORT_RETURN_IF_ERROR(read(part));
      begin += part.shape[axis];
    }
    return {};
  }

 private:
  int64_t granules(const Box& box, size_t axis) const {
    const int64_t granule = tensor_.granule[axis];
    return (box.origin[axis] + box.shape[axis] - 1) / granule - box.origin[axis] / granule + 1;
  }

  /// True when the box is one run of bytes within the region.
  bool is_run(const Box& box) const {
    size_t axis = 0;
    while (axis < box.shape.size() && box.shape[axis] == 1) ++axis;
    for (++axis; axis < box.shape.size(); ++axis)
      if (box.shape[axis] != whole_.shape[axis]) return false;
    return true;
  }

  Result<> read_piece(const Box& box) const {
    if (!go_on_()) return fail(ErrorKind::kInterrupted, "reading was stopped");
    int64_t first = 0;
    for (size_t i = 0; i < strides_.size(); ++i) first += (box.origin[i] - whole_.origin[i]) * strides_[i];
    const DType dtype = tensor_.lazy->dtype();
    const auto bytes = static_cast<size_t>(element_count(box.shape) * size_);
    MutableByteSpan place = out_.subspan(static_cast<size_t>(first * size_));
    if (is_run(box)) return tensor_.lazy->read(box, dtype, place.first(bytes));
    Bytes piece(bytes);
    MAXPORT_RETURN_IF_ERROR(tensor_.lazy->read(box, dtype, piece));
    strided_copy({box.shape, row_major_strides(box.shape), strides_}, ElementOp::convert(dtype, dtype), piece.data(),
                 place.data());
    return {};
  }

  const NamedTensor& tensor_;
  const Box& whole_;
  std::vector<int64_t> strides_;
  int64_t size_;
  MutableByteSpan out_;
  const std::function<bool()>& go_on_;
};

}  // namespace

Result<> read_in_pieces(const NamedTensor& tensor, const Box& region, MutableByteSpan out,
                        const std::function<bool()>& go_on) {
  if (region.empty()) return {};
  return PieceReader(tensor, region, out, go_on).read(region);
}

}  // namespace maxport::python
