#include "plan/cover.h"

#include <algorithm>

namespace maxport::plan {
namespace {

struct Interval {
  int64_t begin, end;
};

/// A walk as a box over the digits of a mixed radix, most significant digit first.
struct DigitBox {
  size_t walk;
  std::vector<Interval> digits;
};

int64_t count(const Footprint& walk) {
  int64_t n = 1;
  for (int64_t extent : walk.extents) n *= extent;
  return n;
}

/// The last element of a walk.
int64_t last(const Footprint& walk) {
  int64_t at = walk.offset;
  for (size_t i = 0; i < walk.extents.size(); ++i) at += (walk.extents[i] - 1) * walk.strides[i];
  return at;
}

/// Weights of the digits, descending, ending in 1; empty when the strides do not divide one another.
std::vector<int64_t> radix(int64_t size, std::span<const Footprint> walks) {
  std::vector<int64_t> weights{size, 1};
  for (const Footprint& walk : walks)
    for (size_t i = 0; i < walk.strides.size(); ++i)
      if (walk.extents[i] > 1 && walk.strides[i] > 0) weights.push_back(walk.strides[i]);
  std::ranges::sort(weights, std::greater<>());
  weights.erase(std::unique(weights.begin(), weights.end()), weights.end());
  for (size_t i = 0; i + 1 < weights.size(); ++i)
    if (weights[i] % weights[i + 1] != 0) return {};
  return weights;
}

/// Adds the positions begin..end (in units of the last weight of the range) to the box, as intervals of the digits that
/// `weights[from..to)` stand for. Fails when the run is not a box in these digits.
bool place_run(std::vector<Interval>& digits, const std::vector<int64_t>& weights, size_t from, size_t to,
               int64_t offset, int64_t steps) {
  // Digits between two strides of a walk hold one run of `steps` positions. It is a box when it is aligned to whole
  // lower digits, or stays within one digit.
  for (size_t d = to; d-- > from;) {
    const int64_t base = weights[d] / weights[d + 1];  // number of values of this digit
    const int64_t low = offset % base, high = offset / base;
    if (low + steps <= base) {
      digits[d] = {low, low + steps};
      offset = high;
      steps = 1;
    } else if (low == 0 && steps % base == 0) {
      digits[d] = {0, base};
      offset = high;
      steps /= base;
    } else {
      return false;
    }
  }
  return offset == 0 && steps == 1;
}

/// Writes a walk as a box; false when it is none in this radix.
bool to_box(const Footprint& walk, const std::vector<int64_t>& weights, DigitBox& box) {
  const size_t digit_count = weights.size() - 1;
  box.digits.assign(digit_count, {0, 1});
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent; descending stride
  for (size_t i = 0; i < walk.extents.size(); ++i)
    if (walk.extents[i] > 1) axes.emplace_back(walk.strides[i], walk.extents[i]);
  std::ranges::sort(axes, std::greater<>());
  int64_t rest = walk.offset;
  size_t from = 0;
  for (size_t a = 0; a <= axes.size(); ++a) {
    // The digits above the next stride's own hold the offset alone; then the stride's digits hold its run.
    const bool tail = a == axes.size();
    const int64_t unit = tail ? 1 : axes[a].first;
    const size_t to = static_cast<size_t>(std::ranges::find(weights, unit) - weights.begin());
    if (to > digit_count) return false;
    const int64_t steps = tail ? 1 : axes[a].second;
    if (to == from) {
      if (!tail && steps > 1) return false;  // two axes with one stride: the walk meets itself
      continue;
    }
    const int64_t offset = rest / unit;
    if (!place_run(box.digits, weights, from, to, offset, steps)) return false;
    rest -= offset * unit;
    from = to;
  }
  return true;
}

/// Finds two boxes that meet. Boxes are sorted into groups digit by digit, so that only those whose intervals overlap
/// in every earlier digit are compared.
class OverlapFinder {
 public:
  explicit OverlapFinder(const std::vector<DigitBox>& boxes) : boxes_(boxes) {}

  /// True when two of `group` meet; `first` and `second` tell which.
  bool find(std::vector<size_t> group, size_t digit) {
    if (group.size() < 2) return false;
    if (digit == boxes_[group[0]].digits.size()) {
      first = group[0];
      second = group[1];
      return true;
    }
    std::vector<int64_t> cuts;
    for (size_t i : group) {
      cuts.push_back(boxes_[i].digits[digit].begin);
      cuts.push_back(boxes_[i].digits[digit].end);
    }
    std::ranges::sort(cuts);
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<std::vector<size_t>> cells(cuts.size());
    for (size_t i : group) {
      const Interval& interval = boxes_[i].digits[digit];
      auto cell = static_cast<size_t>(std::ranges::lower_bound(cuts, interval.begin) - cuts.begin());
      for (; cuts[cell] < interval.end; ++cell) cells[cell].push_back(i);
    }
    group.clear();
    for (std::vector<size_t>& cell : cells)
      if (find(std::move(cell), digit + 1)) return true;
    return false;
  }

  size_t first = 0, second = 0;

 private:
  const std::vector<DigitBox>& boxes_;
};

Result<Coverage> count_one_by_one(int64_t size, std::span<const Footprint> walks) {
  if (size > (int64_t{1} << 28))
    return fail(ErrorKind::kUnsupported,
                "the strides of these walks do not divide one another; {} elements are too many to count", size);
  std::vector<bool> seen(static_cast<size_t>(size), false);
  Coverage out;
  for (size_t w = 0; w < walks.size(); ++w) {
    const Footprint& walk = walks[w];
    std::vector<int64_t> at(walk.extents.size(), 0);
    for (int64_t left = count(walk); left > 0; --left) {
      int64_t position = walk.offset;
      for (size_t i = 0; i < at.size(); ++i) position += at[i] * walk.strides[i];
      if (seen[static_cast<size_t>(position)]) {
        out.overlap_at = position;
        out.overlap_first = out.overlap_second = w;
        return out;
      }
      seen[static_cast<size_t>(position)] = true;
      ++out.covered;
      for (size_t i = at.size(); i-- > 0;) {
        if (++at[i] < walk.extents[i]) break;
        at[i] = 0;
      }
    }
  }
  return out;
}

}  // namespace

Result<Coverage> cover(int64_t size, std::span<const Footprint> walks) {
  Coverage out;
  for (const Footprint& walk : walks) {
    if (count(walk) == 0) continue;
    if (walk.offset < 0 || last(walk) >= size) {
      out.outside = true;
      return out;
    }
  }
  const std::vector<int64_t> weights = radix(size, walks);
  std::vector<DigitBox> boxes;
  for (size_t w = 0; w < walks.size() && !weights.empty(); ++w) {
    if (count(walks[w]) == 0) continue;
    DigitBox box{w, {}};
    if (!to_box(walks[w], weights, box)) return count_one_by_one(size, walks);
    boxes.push_back(std::move(box));
    out.covered += count(walks[w]);
  }
  if (weights.empty()) return count_one_by_one(size, walks);
  std::vector<size_t> all(boxes.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  OverlapFinder finder(boxes);
  if (finder.find(std::move(all), 0)) {
    out.overlap_first = boxes[finder.first].walk;
    out.overlap_second = boxes[finder.second].walk;
    out.overlap_at = std::max(walks[out.overlap_first].offset, walks[out.overlap_second].offset);
  }
  return out;
}

}  // namespace maxport::plan
