// The JSON files of a checkpoint as plain values, each with its text and a parser (formats.md 3.2 to 3.5).
//
// Parsers take what stock Orbax takes: unknown members are ignored where it ignores them, and refused where it cannot
// load the file. `what` names the file in messages. Malformed content is kCorruptData.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "orbax/tree.h"
#include "tensor/shape.h"

namespace maxport::orbax {

inline constexpr std::string_view kStepMetadataFile = "_CHECKPOINT_METADATA";
inline constexpr std::string_view kTreeMetadataFile = "_METADATA";
inline constexpr std::string_view kShardingFile = "_sharding";
inline constexpr std::string_view kArrayMetadataFile = "array_metadatas/process_0";
inline constexpr std::string_view kStringsFile = "_strings.json";
inline constexpr std::string_view kCommitFile = "commit_success.txt";
inline constexpr std::string_view kTemporarySuffix = ".orbax-checkpoint-tmp";

/// The handler of trees that both v0 and v1 readers know (formats.md 4.1).
inline constexpr std::string_view kTreeHandlerType =
    "orbax.checkpoint._src.handlers.pytree_checkpoint_handler.PyTreeCheckpointHandler";

// --- the step: _CHECKPOINT_METADATA ---

struct StepMetadata {
  /// Item name to handler type string. A checkpoint that is a single item has one entry with an empty name.
  std::map<std::string, std::string> item_handlers;
  std::optional<int64_t> init_timestamp_nsecs;  ///< since 1970
  std::optional<int64_t> commit_timestamp_nsecs;
  Json custom_metadata = Json::object();  ///< an object; MaxText keeps "scan_layers" here
};

std::string step_metadata_text(const StepMetadata& metadata);
Result<StepMetadata> parse_step_metadata(std::string_view text, std::string_view what);

// --- the tree of an item: _METADATA ---

/// Type strings that stock readers know. The empty markers have no data.
inline constexpr std::string_view kNumpyType = "np.ndarray";
inline constexpr std::string_view kJaxType = "jax.Array";
inline constexpr std::string_view kScalarType = "scalar";
inline constexpr std::string_view kStringType = "string";
inline constexpr std::string_view kEmptyDictType = "Dict";
inline constexpr std::string_view kEmptyListType = "List";
inline constexpr std::string_view kEmptyTupleType = "Tuple";
inline constexpr std::string_view kEmptyNamedTupleType = "NamedTuple";
inline constexpr std::string_view kNoneType = "None";

/// True for the five markers of empty nodes.
bool is_empty_type(std::string_view value_type);
/// True for the four types with data and the five markers.
bool is_stock_type(std::string_view value_type);

struct LeafMetadata {
  TreePath path = {};
  std::string value_type = {};
  bool skip_deserialize = false;            ///< nothing is stored for the leaf
  std::optional<Shape> write_shape = {};  ///< what each device wrote; of kJaxType only
};

struct TreeMetadata {
  std::vector<LeafMetadata> leaves;
  std::optional<bool> use_ocdbt;  ///< absent: look for the database
  bool use_zarr3 = false;
  bool store_equal_to_fill_value = false;  ///< chunks that hold only the fill value are stored
  Json custom_metadata;                    ///< null or anything
};

std::string tree_metadata_text(const TreeMetadata& metadata);
/// The leaves form a tree (check_tree) when this succeeds.
Result<TreeMetadata> parse_tree_metadata(std::string_view text, std::string_view what);

// --- sharding of jax.Array leaves: _sharding, array_metadatas ---

/// A one-dimensional mesh of devices 0..N-1, as MaxText's converter simulates it, and the axis cut over it.
struct DeviceSharding {
  int64_t devices = 1;
  std::optional<size_t> axis = {};  ///< absent: every device has the whole array
  size_t rank = 0;
};

/// How MaxText shards an array over N devices (formats.md 3.9): the first of axes 0 and 1 that N divides.
DeviceSharding device_sharding(std::span<const int64_t> shape, int64_t devices);
/// What each device writes: the shape with its first axis that N divides, divided by N.
Shape device_write_shape(std::span<const int64_t> shape, int64_t devices);

/// Parameter name to sharding.
std::string sharding_text(const std::map<std::string, DeviceSharding>& shardings);
/// Parameter name to the sharding's own JSON.
Result<std::map<std::string, Json>> parse_sharding(std::string_view text, std::string_view what);

struct ArrayMetadata {
  std::string name;
  Shape write_shape;
  Shape chunk_shape;
  Json ext_metadata;  ///< null, or an object; for random keys {"random_key_impl": "..."}
};

std::string array_metadata_text(std::span<const ArrayMetadata> arrays);
Result<std::vector<ArrayMetadata>> parse_array_metadata(std::string_view text, std::string_view what);

// --- strings: _strings.json ---

std::string strings_text(const std::map<std::string, std::string>& strings);
Result<std::map<std::string, std::string>> parse_strings(std::string_view text, std::string_view what);

}  // namespace maxport::orbax
