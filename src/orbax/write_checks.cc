#include "orbax/write_checks.h"

#include <algorithm>
#include <array>

#include "orbax/checkpoint_path.h"

namespace maxport::orbax {
namespace {

// `checkpoint` in an item directory is taken for a file of an old format (formats.md 3.1).
constexpr std::array<std::string_view, 9> kReservedNames = {
    kStepMetadataFile, kTreeMetadataFile, kShardingFile,      kStringsFile, kCommitFile,
    "array_metadatas", "checkpoint",      "orbax.checkpoint", "descriptor"};
constexpr std::array<std::string_view, 3> kReservedItems = {"metrics", "AUTO", "_CHECKPOINT_DELETION"};

bool is_reserved(std::string_view name) {
  return std::ranges::count(kReservedNames, name) > 0 || name == "manifest.ocdbt" || name == "d" ||
         name.starts_with("ocdbt.process_");
}

bool is_path_component(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

std::string_view expected_type(const WriteLeaf& leaf) {
  struct Visitor {
    std::string_view operator()(const zarr::ArraySpec&) const { return kNumpyType; }
    std::string_view operator()(int64_t) const { return kScalarType; }
    std::string_view operator()(double) const { return kScalarType; }
    std::string_view operator()(const std::string&) const { return kStringType; }
    std::string_view operator()(const EmptyLeaf&) const { return kEmptyDictType; }
  };
  return std::visit(Visitor(), leaf.content);
}

bool type_fits(const WriteLeaf& leaf) {
  const std::string_view expected = expected_type(leaf);
  if (expected == kEmptyDictType) return is_empty_type(leaf.value_type);
  return leaf.value_type == expected || (expected == kNumpyType && leaf.value_type == kJaxType);
}

Result<> check_array(const WriteLeaf& leaf, const CheckpointWriterOptions& options) {
  const zarr::ArraySpec& spec = *leaf.array();
  MAXPORT_RETURN_IF_ERROR(zarr::check_array_spec(spec, ErrorKind::kInvalidArgument));
  if (element_count(spec.shape) == 0)
    return fail(ErrorKind::kInvalidArgument, "shape {} has no elements; Orbax checkpoints cannot hold such arrays",
                shape_text(spec.shape));
  if (spec.version != options.version)
    return fail(ErrorKind::kInvalidArgument, "its layout is of another Zarr version than the checkpoint's");
  if (leaf.value_type == kJaxType && !options.devices)
    return fail(ErrorKind::kInvalidArgument, "recorded as jax.Array, but no devices are given to shard it over");
  return {};
}

Result<> check_leaf(const WriteLeaf& leaf, const CheckpointWriterOptions& options) {
  if (!type_fits(leaf))
    return fail(ErrorKind::kInvalidArgument, "recorded as \"{}\", which is no type for it; expected {}",
                printable(leaf.value_type), expected_type(leaf));
  if (leaf.array()) MAXPORT_RETURN_IF_ERROR(check_array(leaf, options));
  const std::string name = leaf.name();
  // Stock looks such names up as JSON pointers.
  if (std::holds_alternative<std::string>(leaf.content) && name.find_first_of("/~") != name.npos)
    return fail(ErrorKind::kInvalidArgument, "the name of a string leaf must not contain \"/\" or \"~\"");
  if (!options.use_ocdbt && (!is_path_component(name) || is_reserved(name)))
    return fail(ErrorKind::kInvalidArgument, "no directory can have this name; use OCDBT");
  return {};
}

}  // namespace

Result<> check_leaves(std::span<const WriteLeaf> leaves, const CheckpointWriterOptions& options) {
  if (leaves.empty()) return fail(ErrorKind::kInvalidArgument, "a checkpoint needs at least one leaf");
  std::vector<TreeEntry> entries;
  for (const WriteLeaf& leaf : leaves) {
    if (Result<> status = check_leaf(leaf, options); !status)
      return std::unexpected(std::move(status).error().with_context(fmt::format("leaf \"{}\"", printable(leaf.name()))));
    entries.push_back({leaf.path, !is_empty_type(leaf.value_type)});
  }
  return check_tree(entries, ErrorKind::kInvalidArgument);
}

Result<> check_options(int64_t step, const CheckpointWriterOptions& options) {
  if (step < 0) return fail(ErrorKind::kInvalidArgument, "step {} is negative", step);
  if (!is_path_component(options.item) || is_temporary_name(options.item) || is_reserved(options.item) ||
      std::ranges::count(kReservedItems, options.item) > 0)
    return fail(ErrorKind::kInvalidArgument, "\"{}\" cannot be the name of an item", printable(options.item));
  if (options.devices && *options.devices < 1)
    return fail(ErrorKind::kInvalidArgument, "{} devices; at least 1 is needed", *options.devices);
  if (!options.custom_metadata.is_object())
    return fail(ErrorKind::kInvalidArgument, "custom metadata must be an object, not {}",
                json_kind(options.custom_metadata));
  return {};
}

Result<> check_file_name(const std::string& name) {
  if (is_path_component(name) && !is_reserved(name) && !is_temporary_name(name)) return {};
  return fail(ErrorKind::kInvalidArgument, "\"{}\" cannot be the name of an extra file", printable(name));
}

}  // namespace maxport::orbax
