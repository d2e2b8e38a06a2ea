#include "forward/weights.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "forward/matmul.h"

namespace maxport::forward {
namespace {

// A single read of more elements than this (16 GB) is a damaged shape rather than a weight.
constexpr int64_t kMaxElements = int64_t{1} << 32;
// What a block of a table may take when the storage has no wish of its own.
constexpr int64_t kBlockElements = int64_t{1} << 22;

// How many rows of [rows, width] to read at once: whole steps, about kBlockElements.
Result<int64_t> block_rows(const Weights& weights, std::string_view name, int64_t width) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t step, weights.row_step(name));
  const int64_t fitting = std::max<int64_t>(kBlockElements / std::max<int64_t>(width, 1), 1);
  return std::max<int64_t>(step, fitting / step * step);
}

}  // namespace

Result<Tensor> Weights::part(std::string_view name, const Box& box) const {
  const auto count = checked_product(box.shape);
  if (!count || *count > kMaxElements)
    return fail(ErrorKind::kResourceLimit, "{}: a part of shape {} is more than a forward pass reads at once",
                printable(name), shape_text(box.shape));
  Tensor out{box.shape, std::vector<float>(static_cast<size_t>(*count))};
  MAXPORT_RETURN_IF_ERROR(read(name, box, out.data));
  return out;
}

Result<Tensor> Weights::tensor(std::string_view name) const {
  MAXPORT_ASSIGN_OR_RETURN(const Shape all, shape(name));
  return part(name, Box::whole(all));
}

Result<Tensor> Weights::slice(std::string_view name, int64_t axis, int64_t index) const {
  MAXPORT_ASSIGN_OR_RETURN(const Shape all, shape(name));
  if (axis >= static_cast<int64_t>(all.size()) || index >= all[static_cast<size_t>(axis)])
    return fail(ErrorKind::kInvalidArgument, "{}: its shape {} has no index {} on axis {}", printable(name),
                shape_text(all), index, axis);
  Box box = Box::whole(all);
  box.origin[static_cast<size_t>(axis)] = index;
  box.shape[static_cast<size_t>(axis)] = 1;
  MAXPORT_ASSIGN_OR_RETURN(Tensor out, part(name, box));
  out.shape.erase(out.shape.begin() + axis);
  return out;
}

Result<Matrix> Weights::rows(std::string_view name, std::span<const int32_t> ids) const {
  MAXPORT_ASSIGN_OR_RETURN(const Shape all, shape(name));
  MAXPORT_RETURN_IF_ERROR(check_shape(name, all, {-1, -1}));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t step, row_step(name));
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return ids[i]; });
  Matrix out(static_cast<int64_t>(ids.size()), all[1]);
  for (size_t i = 0; i < order.size();) {
    // Ids of one step of the table are read together.
    const int64_t first = ids[order[i]];
    size_t end = i;
    while (end < order.size() && ids[order[end]] / step == first / step) ++end;
    const int64_t last = ids[order[end - 1]];
    if (first < 0 || last >= all[0])
      return fail(ErrorKind::kInvalidArgument, "token id {} is not in the vocabulary: {} has {} rows",
                  first < 0 ? first : last, printable(name), all[0]);
    MAXPORT_ASSIGN_OR_RETURN(const Tensor block, part(name, {{first, 0}, {last - first + 1, all[1]}}));
    for (; i < end; ++i)
      std::copy_n(block.data.begin() + (ids[order[i]] - first) * all[1], all[1],
                  out.row(static_cast<int64_t>(order[i])));
  }
  return out;
}

Result<> check_shape(std::string_view name, const Shape& found, const Shape& expected) {
  bool same = found.size() == expected.size();
  for (size_t i = 0; same && i < found.size(); ++i) same = expected[i] == -1 || expected[i] == found[i];
  if (same) return {};
  return fail(ErrorKind::kInvalidArgument,
              "{}: its shape is {}, but the model's configuration asks for {} (-1: any extent)", printable(name),
              shape_text(found), shape_text(expected));
}

Result<Matrix> multiply_by_rows(const Weights& weights, std::string_view name, const Matrix& x,
                                const std::function<void(std::span<float>)>& change) {
  MAXPORT_ASSIGN_OR_RETURN(const Shape all, weights.shape(name));
  MAXPORT_RETURN_IF_ERROR(check_shape(name, all, {-1, x.cols}));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t step, block_rows(weights, name, all[1]));
  Matrix out(x.rows, all[0]);
  for (int64_t begin = 0; begin < all[0]; begin += step) {
    const int64_t count = std::min(step, all[0] - begin);
    MAXPORT_ASSIGN_OR_RETURN(Tensor block, weights.part(name, {{begin, 0}, {count, all[1]}}));
    if (change) change(block.data);
    multiply_transposed({out.data.data() + begin, out.rows, count, out.cols}, view(x),
                        {block.data.data(), count, all[1], all[1]});
  }
  return out;
}

Result<Matrix> multiply_by_columns(const Weights& weights, std::string_view name, const Matrix& x) {
  MAXPORT_ASSIGN_OR_RETURN(const Shape all, weights.shape(name));
  MAXPORT_RETURN_IF_ERROR(check_shape(name, all, {x.cols, -1}));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t step, block_rows(weights, name, all[1]));
  Matrix out(x.rows, all[1]);
  for (int64_t begin = 0; begin < all[0]; begin += step) {
    const int64_t count = std::min(step, all[0] - begin);
    MAXPORT_ASSIGN_OR_RETURN(const Tensor block, weights.part(name, {{begin, 0}, {count, all[1]}}));
    multiply(view(out), {x.data.data() + begin, x.rows, count, x.cols}, {block.data.data(), count, all[1], all[1]},
             true);
  }
  return out;
}

}  // namespace maxport::forward
