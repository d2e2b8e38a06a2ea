#include "file_tensors.h"

#include <algorithm>
#include <cstring>

#include "tensor/cast.h"
#include "tensor/strided_copy.h"

namespace maxport::python {
namespace {

/// Runs that lie closer than this are read together: skipping less costs more than reading it.
constexpr int64_t kMaxGap = int64_t{32} << 10;
/// What is read together is at most this much, or one run.
constexpr int64_t kMaxWindow = int64_t{4} << 20;

/// The contiguous runs of a box in a dense row-major tensor, in elements and ascending order.
class Runs {
 public:
  Runs(const Shape& shape, const Box& box) : box_(box), strides_(row_major_strides(shape)) {
    outer_ = shape.size();
    while (outer_ > 0) {
      --outer_;
      length_ *= box.shape[outer_];
      if (box.shape[outer_] != shape[outer_]) break;
    }
    index_.assign(outer_, 0);
    for (size_t i = 0; i < shape.size(); ++i) begin_ += box.origin[i] * strides_[i];
  }

  int64_t length() const { return length_; }
  int64_t begin() const { return begin_; }
  bool done() const { return done_; }

  void advance() {
    for (size_t axis = outer_; axis-- > 0;) {
      begin_ += strides_[axis];
      if (++index_[axis] < box_.shape[axis]) return;
      begin_ -= index_[axis] * strides_[axis];
      index_[axis] = 0;
    }
    done_ = true;
  }

 private:
  const Box& box_;
  std::vector<int64_t> strides_;
  std::vector<int64_t> index_;
  size_t outer_ = 0;  // axes that are stepped through; those further in make up a run
  int64_t length_ = 1;
  int64_t begin_ = 0;
  bool done_ = false;
};

class FileTensor final : public orbax::LazyTensor {
 public:
  FileTensor(const safetensors::TensorInfo& info, ReadBytes read) : info_(info), read_(std::move(read)) {}

  const Shape& shape() const override { return info_.shape; }
  DType dtype() const override { return info_.dtype; }

  Result<> read(const Box& region, DType as, MutableByteSpan out) const override {
    MAXPORT_RETURN_IF_ERROR(check_read(region, as, out.size()));
    if (region.empty()) return {};
    const bool packed = dtype_info(dtype()).bits % 8 != 0;
    if (as == dtype() && !packed) return read_runs(region, out);
    Bytes stored(static_cast<size_t>(element_count(region.shape) * dtype_bytes(dtype())));
    MAXPORT_RETURN_IF_ERROR(packed ? read_packed(region, stored) : read_runs(region, stored));
    cast(dtype(), stored, as, out);
    return {};
  }

 private:
  Result<> read_runs(const Box& region, MutableByteSpan out) const {
    const int64_t size = dtype_bytes(dtype());
    Runs runs(shape(), region);
    const int64_t run_bytes = runs.length() * size;
    std::vector<int64_t> begins;
    Bytes window;
    while (!runs.done()) {
      begins.clear();
      const int64_t first = runs.begin() * size;
      int64_t end = first;
      while (!runs.done()) {
        const int64_t begin = runs.begin() * size;
        if (!begins.empty() && (begin - end > kMaxGap || begin + run_bytes - first > kMaxWindow)) break;
        begins.push_back(begin - first);
        end = begin + run_bytes;
        runs.advance();
      }
      const auto wanted = static_cast<size_t>(run_bytes) * begins.size();
      MutableByteSpan target = out.first(wanted);
      out = out.subspan(wanted);
      if (begins.size() == 1) {
        MAXPORT_RETURN_IF_ERROR(read_(static_cast<uint64_t>(first), target));
        continue;
      }
      window.resize(static_cast<size_t>(end - first));
      MAXPORT_RETURN_IF_ERROR(read_(static_cast<uint64_t>(first), window));
      for (size_t i = 0; i < begins.size(); ++i)
        std::memcpy(target.data() + i * static_cast<size_t>(run_bytes), window.data() + begins[i],
                    static_cast<size_t>(run_bytes));
    }
    return {};
  }

  /// Reads the bytes from the box's first to its last element and unpacks them.
  Result<> read_packed(const Box& region, MutableByteSpan out) const {
    const std::vector<int64_t> strides = row_major_strides(shape());
    int64_t first = 0, last = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
      first += region.origin[i] * strides[i];
      last += (region.origin[i] + region.shape[i] - 1) * strides[i];
    }
    const auto bits = static_cast<uint64_t>(dtype_info(dtype()).bits);
    const uint64_t begin_bit = static_cast<uint64_t>(first) * bits;
    const uint64_t begin_byte = begin_bit / 8, end_byte = (static_cast<uint64_t>(last + 1) * bits + 7) / 8;
    Bytes window(static_cast<size_t>(end_byte - begin_byte));
    MAXPORT_RETURN_IF_ERROR(read_(begin_byte, window));
    Bytes unpacked(static_cast<size_t>(last + 1 - first));
    for (size_t i = 0; i < unpacked.size(); ++i) {
      const uint64_t bit = begin_bit + i * bits - begin_byte * 8;
      unsigned two = std::to_integer<unsigned>(window[bit / 8]);
      if (bit % 8 + bits > 8) two |= std::to_integer<unsigned>(window[bit / 8 + 1]) << 8;
      unpacked[i] = static_cast<std::byte>((two >> (bit % 8)) & ((1u << bits) - 1));
    }
    strided_copy({region.shape, strides, row_major_strides(region.shape)}, ElementOp::convert(dtype(), dtype()),
                 unpacked.data(), out.data());
    return {};
  }

  const safetensors::TensorInfo& info_;
  ReadBytes read_;
};

}  // namespace

std::shared_ptr<const orbax::LazyTensor> file_tensor(const safetensors::TensorInfo& info, ReadBytes read) {
  return std::make_shared<FileTensor>(info, std::move(read));
}

}  // namespace maxport::python
