#include "maxtext/sharding.h"

namespace maxport::maxtext {

std::optional<int> shard_axis(std::span<const int64_t> shape, int devices) {
  if (devices < 2) return std::nullopt;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    if (shape[axis] > 0 && shape[axis] % devices == 0) return static_cast<int>(axis);
  return std::nullopt;
}

std::optional<int> partition_axis(std::span<const int64_t> shape, int devices) {
  const auto axis = shard_axis(shape, devices);
  return axis && *axis < 2 ? axis : std::nullopt;
}

Shape shard_shape(std::span<const int64_t> shape, int devices) {
  Shape out(shape.begin(), shape.end());
  if (const auto axis = shard_axis(shape, devices)) out[static_cast<size_t>(*axis)] /= devices;
  return out;
}

std::vector<std::optional<std::string>> partition_spec(std::span<const int64_t> shape, int devices) {
  if (shape.empty()) return {};
  const auto axis = partition_axis(shape, devices);
  if (!axis) return {std::nullopt};
  std::vector<std::optional<std::string>> spec(static_cast<size_t>(*axis));
  spec.emplace_back(kShardingAxisName);
  return spec;
}

}  // namespace maxport::maxtext
