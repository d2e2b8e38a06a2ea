#include "models/parameter_map.h"

#include <cmath>

namespace maxport::models {

Arithmetic copy() { return {}; }

Arithmetic multiply(std::string name, float to_maxtext, float to_huggingface) {
  return {Arithmetic::Kind::kMultiply, to_maxtext, to_huggingface, false, std::move(name)};
}

Arithmetic scale_query(int64_t head_dim) {
  const double root = std::sqrt(static_cast<double>(head_dim));
  return multiply("query scale", static_cast<float>(1.0 / root), static_cast<float>(root));
}

Arithmetic shift_norm() { return {Arithmetic::Kind::kAdd, 1.0f, -1.0f, true, "norm shift"}; }

Arithmetic scale_embedding(int64_t hidden) {
  const auto root = static_cast<float>(std::sqrt(static_cast<double>(hidden)));
  return multiply("embedding scale", root, 1.0f / root);
}

int64_t LayerGroup::layer_count() const {
  int64_t count = 1;
  for (const Loop& loop : loops) count *= loop.count;
  return count;
}

std::string LayerGroup::huggingface_name(std::string_view rest) const {
  std::string name = fmt::format("{}.{}", huggingface, rest);
  constexpr std::string_view kLayer = "{layer}";
  if (const size_t at = name.find(kLayer); at != std::string::npos)
    name.replace(at, kLayer.size(), std::to_string(first_layer));
  return name;
}

Rule& ParameterMap::add(std::string maxtext, std::string huggingface, std::string pattern, Arithmetic arithmetic) {
  Rule rule;
  rule.maxtext = std::move(maxtext);
  rule.parts.push_back({std::move(huggingface), std::move(pattern)});
  rule.arithmetic = std::move(arithmetic);
  return rules.emplace_back(std::move(rule));
}

Rule& ParameterMap::add(const LayerGroup& layers, std::string maxtext, std::string huggingface, std::string pattern,
                        Arithmetic arithmetic) {
  return add(layers, std::move(maxtext), {{std::move(huggingface), std::move(pattern)}}, std::move(arithmetic));
}

Rule& ParameterMap::add(const LayerGroup& layers, std::string maxtext, std::vector<Part> parts, Arithmetic arithmetic) {
  Rule rule;
  rule.maxtext = layers.maxtext + "." + maxtext;
  rule.parts = std::move(parts);
  for (Part& part : rule.parts) part.huggingface = layers.huggingface + "." + part.huggingface;
  rule.arithmetic = std::move(arithmetic);
  rule.layers = layers;
  return rules.emplace_back(std::move(rule));
}

Rule& ParameterMap::add_constant(const LayerGroup& layers, std::string maxtext, std::string shape, float value) {
  Rule rule;
  rule.maxtext = layers.maxtext + "." + maxtext;
  rule.layers = layers;
  rule.fill = value;
  rule.constant_shape = std::move(shape);
  rule.arithmetic.keeps_float32 = true;
  return rules.emplace_back(std::move(rule));
}

void ParameterMap::ignore(std::string name_pattern, std::string reason) {
  ignored.push_back({std::move(name_pattern), std::move(reason)});
}

const IgnoreRule* ParameterMap::find_ignored(std::string_view name) const {
  for (const IgnoreRule& rule : ignored)
    if (matches(rule.name_pattern, name)) return &rule;
  return nullptr;
}

bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace maxport::models
