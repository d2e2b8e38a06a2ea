// Nearest known names for a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace maxport::maxtext {

/// Edits (insert, remove, replace, swap neighbours) that lead from `a` to `b`. Case and '-' against '_' do not count.
size_t edit_distance(std::string_view a, std::string_view b);

/// Candidates within a third of the name's length, nearest first, ties in the order given.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string_view> candidates,
                                       size_t count = 3);

/// "; did you mean a, b or c?", or nothing when the list is empty.
std::string did_you_mean(std::span<const std::string> names);

}  // namespace maxport::maxtext
