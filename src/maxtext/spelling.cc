#include "maxtext/spelling.h"

#include <algorithm>
#include <utility>

namespace maxport::maxtext {
namespace {

char folded(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: swaps of neighbours look two rows back.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = folded(a[i - 1]), y = folded(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (x == y ? 0 : 1)});
      if (i > 1 && j > 1 && x == folded(b[j - 2]) && folded(a[i - 2]) == y) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string_view> candidates,
                                       size_t count) {
  // A name longer than any real one is nobody's typing error, and its table would be large.
  constexpr size_t kLongestName = 128;
  if (name.empty() || name.size() > kLongestName) return {};
  const size_t limit = std::max<size_t>(1, name.size() / 3);
  std::vector<std::pair<size_t, size_t>> found;  // distance, position
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::string_view candidate = candidates[i];
    const size_t longer = std::max(candidate.size(), name.size()), shorter = std::min(candidate.size(), name.size());
    if (longer - shorter > limit) continue;
    if (const size_t distance = edit_distance(name, candidate); distance <= limit) found.emplace_back(distance, i);
  }
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (const auto& [distance, position] : found) {
    if (names.size() == count) break;
    names.emplace_back(candidates[position]);
  }
  return names;
}

std::string did_you_mean(std::span<const std::string> names) {
  if (names.empty()) return {};
  std::string text = "; did you mean ";
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text + "?";
}

}  // namespace maxport::maxtext
