// How MaxText's converter spreads a checkpoint over simulated devices (formats.md, 3.9).
//
// The devices form a line. An array is cut along axis 0 when that divides by their number, else along axis 1, else it
// is replicated; Orbax lets replicas write slices along the first axis that divides, so the chunk shape follows the
// first divisible axis in every case.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/shape.h"

namespace maxport::maxtext {

/// The mesh axis name that MaxText's converter gives.
inline constexpr std::string_view kShardingAxisName = "checkpoint_sharding_axis";

/// The axis named in the partition spec: 0, 1 or none (replicated, or a scalar). `devices` is at least 1; with one
/// device nothing is sharded.
std::optional<int> partition_axis(std::span<const int64_t> shape, int devices);

/// The axis along which chunks are cut: the first whose extent is a positive multiple of `devices`; none when there is
/// no such axis or only one device.
std::optional<int> shard_axis(std::span<const int64_t> shape, int devices);

/// The chunk shape that MaxText's own output has: `shape` with shard_axis() divided by `devices`.
Shape shard_shape(std::span<const int64_t> shape, int devices);

/// The partition spec recorded in `_sharding`, one entry an axis, no entry meaning null: ["checkpoint_sharding_axis"],
/// [null, "checkpoint_sharding_axis"], [null] when replicated, [] for a scalar.
std::vector<std::optional<std::string>> partition_spec(std::span<const int64_t> shape, int devices);

}  // namespace maxport::maxtext
