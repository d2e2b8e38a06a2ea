#include "forward/matmul.h"

#include <Eigen/Core>
#include <algorithm>
#include <thread>

#include "base/error.h"

namespace maxport::forward {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Map = Eigen::Map<RowMajor, 0, Eigen::OuterStride<>>;
using ConstMap = Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>;

int multiply_threads = 1;

// Below this many multiplications a thread costs more than it brings.
constexpr int64_t kWorthAThread = int64_t{1} << 21;

Map map(View v) { return {v.data, v.rows, v.cols, Eigen::OuterStride<>(v.stride)}; }
ConstMap map(ConstView v) { return {v.data, v.rows, v.cols, Eigen::OuterStride<>(v.stride)}; }

// Up to this many multiplications are done in double: that takes no time that anybody notices, and what is left of a
// difference is the reference's own rounding.
constexpr int64_t kInDouble = int64_t{1} << 24;

template <class Target, class Product>
void assign(Target& target, const Product& product, bool add) {
  if (add)
    target += product.template cast<float>();
  else
    target = product.template cast<float>();
}

// Calls part(begin, end) for slices of the output's columns, in threads when that pays.
template <class Part>
void over_columns(int64_t columns, int64_t work, Part part) {
  const int64_t wanted = std::min<int64_t>(multiply_threads, work / kWorthAThread);
  const int64_t threads = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(columns, 1));
  std::vector<std::jthread> others;
  for (int64_t t = 1; t < threads; ++t)
    others.emplace_back([=] { part(columns * t / threads, columns * (t + 1) / threads); });
  part(0, columns / threads);
}

}  // namespace

void set_multiply_threads(int threads) { multiply_threads = std::max(threads, 1); }

void multiply(View out, ConstView a, ConstView b, bool add) {
  MAXPORT_CHECK(a.cols == b.rows && out.rows == a.rows && out.cols == b.cols);
  over_columns(out.cols, a.rows * a.cols * b.cols, [&](int64_t begin, int64_t end) {
    auto target = map(out).middleCols(begin, end - begin);
    const auto columns = map(b).middleCols(begin, end - begin);
    if (a.rows * a.cols * b.cols <= kInDouble)
      assign(target, map(a).cast<double>() * columns.template cast<double>(), add);
    else if (add)
      target.noalias() += map(a) * columns;
    else
      target.noalias() = map(a) * columns;
  });
}

void multiply_transposed(View out, ConstView a, ConstView b, bool add) {
  MAXPORT_CHECK(a.cols == b.cols && out.rows == a.rows && out.cols == b.rows);
  over_columns(out.cols, a.rows * a.cols * b.rows, [&](int64_t begin, int64_t end) {
    auto target = map(out).middleCols(begin, end - begin);
    const auto rows = map(b).middleRows(begin, end - begin);
    if (a.rows * a.cols * b.rows <= kInDouble)
      assign(target, map(a).cast<double>() * rows.transpose().template cast<double>(), add);
    else if (add)
      target.noalias() += map(a) * rows.transpose();
    else
      target.noalias() = map(a) * rows.transpose();
  });
}

}  // namespace maxport::forward
