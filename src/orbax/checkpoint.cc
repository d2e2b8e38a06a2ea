#include "orbax/checkpoint.h"

#include <algorithm>
#include <set>

#include "ocdbt/database.h"
#include "orbax/leaf_handler.h"
#include "tensor/cast.h"

namespace maxport::orbax {
namespace {

/// The text of a file, or nothing when it is not there.
Result<std::optional<std::string>> read_if_there(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(path));
  if (!kind) return std::nullopt;
  MAXPORT_ASSIGN_OR_RETURN(std::string text, storage.read_text(path, uint64_t{1} << 30));
  return text;
}

Result<LeafKind> kind_of(const LeafMetadata& leaf) {
  if (leaf.skip_deserialize || is_empty_type(leaf.value_type)) return LeafKind::kEmpty;
  if (leaf.value_type == kScalarType) return LeafKind::kScalar;
  if (leaf.value_type == kStringType) return LeafKind::kString;
  if (leaf.value_type == kNumpyType || leaf.value_type == kJaxType) return LeafKind::kArray;
  return fail(ErrorKind::kUnsupported,
              "unknown type \"{}\"; known are np.ndarray, jax.Array, scalar, string and the markers of empty nodes",
              printable(leaf.value_type));
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(Storage& storage, const std::string& path,
                                                     const OpenOptions& options) {
  std::unique_ptr<Checkpoint> out(new Checkpoint);
  MAXPORT_ASSIGN_OR_RETURN(out->path_, resolve_checkpoint(storage, path, options.step, options.item));
  const std::string context = "reading the checkpoint " + printable(out->path_.item_directory);
  MAXPORT_RETURN_IF_ERROR(with_context(out->read_step_metadata(storage), context));
  MAXPORT_RETURN_IF_ERROR(with_context(out->read_tree(storage), context));
  MAXPORT_RETURN_IF_ERROR(with_context(out->open_store(storage), context));
  if (out->inferred_) MAXPORT_RETURN_IF_ERROR(with_context(out->infer_tree(), context));
  MAXPORT_RETURN_IF_ERROR(with_context(out->read_strings(storage), context));
  for (const LeafMetadata& leaf : out->tree_metadata_.leaves)
    MAXPORT_RETURN_IF_ERROR(with_context(out->add_leaf(leaf, options), context));
  std::ranges::sort(out->leaves_, {}, &CheckpointLeaf::name);
  return out;
}

/// Nothing depends on this file but what is shown and `custom_metadata`, so damage to it is a note, as for stock.
Result<> Checkpoint::read_step_metadata(Storage& storage) {
  if (path_.step_directory.empty()) return {};
  const std::string file = join_path(path_.step_directory, kStepMetadataFile);
  MAXPORT_ASSIGN_OR_RETURN(const auto text, read_if_there(storage, file));
  if (!text) {
    notes_.push_back(printable(file) + " is missing");
    return {};
  }
  auto metadata = parse_step_metadata(*text, printable(file));
  if (metadata)
    step_metadata_ = *std::move(metadata);
  else
    notes_.push_back("ignored: " + metadata.error().message());
  return {};
}

Result<> Checkpoint::read_tree(Storage& storage) {
  const std::string file = join_path(path_.item_directory, kTreeMetadataFile);
  MAXPORT_ASSIGN_OR_RETURN(const auto text, read_if_there(storage, file));
  inferred_ = !text;
  if (!text) return {};
  MAXPORT_ASSIGN_OR_RETURN(tree_metadata_, parse_tree_metadata(*text, printable(file)));
  return {};
}

Result<> Checkpoint::open_store(Storage& storage) {
  const std::string manifest = join_path(path_.item_directory, "manifest.ocdbt");
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(manifest));
  uses_ocdbt_ = tree_metadata_.use_ocdbt.value_or(kind == EntryKind::kFile);
  if (!uses_ocdbt_) {
    store_ = open_directory_store(storage, path_.item_directory);
    return {};
  }
  if (!kind)
    return fail(ErrorKind::kNotFound, "{} is missing: the checkpoint is damaged or was never finished",
                printable(manifest));
  MAXPORT_ASSIGN_OR_RETURN(store_, ocdbt::open_database(storage, path_.item_directory));
  return {};
}

/// Array names are paths joined with dots, so they are taken apart at the dots. A key that holds a dot, and lists, come
/// out otherwise than they were saved; their names, by which arrays are found, stay the same.
Result<> Checkpoint::infer_tree() {
  std::set<std::string> names;
  bool zarr3 = false;
  MAXPORT_RETURN_IF_ERROR(store_->list("", [&](std::string_view key, const ValueLocation&) -> Result<> {
    for (const zarr::Version version : {zarr::Version::kV2, zarr::Version::kV3}) {
      const std::string suffix = "/" + std::string(zarr::metadata_key(version));
      if (!key.ends_with(suffix)) continue;
      names.emplace(key.substr(0, key.size() - suffix.size()));
      zarr3 = zarr3 || version == zarr::Version::kV3;
    }
    return {};
  }));
  if (names.empty())
    return fail(ErrorKind::kNotFound, "{} is missing, and there are no arrays to tell the tree from", kTreeMetadataFile);
  std::vector<TreeEntry> entries;
  for (const std::string& name : names) {
    LeafMetadata leaf{.value_type = std::string(kNumpyType)};
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('.', begin), name.size());
      leaf.path.push_back({name.substr(begin, end - begin), false});
      begin = end + 1;
    }
    tree_metadata_.leaves.push_back(std::move(leaf));
  }
  for (const LeafMetadata& leaf : tree_metadata_.leaves) entries.push_back({leaf.path});
  MAXPORT_RETURN_IF_ERROR(with_context(check_tree(entries, ErrorKind::kCorruptData),
                                       "_METADATA is missing, and the names of the arrays are no tree"));
  tree_metadata_.use_zarr3 = zarr3;
  notes_.push_back(fmt::format("{} is missing; the tree was told from the names of its {} arrays", kTreeMetadataFile,
                               names.size()));
  return {};
}

Result<> Checkpoint::read_strings(Storage& storage) {
  const std::string file = join_path(path_.item_directory, kStringsFile);
  MAXPORT_ASSIGN_OR_RETURN(const auto text, read_if_there(storage, file));
  if (!text) return {};
  MAXPORT_ASSIGN_OR_RETURN(strings_, parse_strings(*text, printable(file)));
  return {};
}

Result<> Checkpoint::add_leaf(const LeafMetadata& metadata, const OpenOptions& options) {
  CheckpointLeaf leaf{.path = metadata.path,
                      .name = parameter_name(metadata.path),
                      .value_type = metadata.value_type,
                      .kind = LeafKind::kArray,
                      .shape = {},
                      .dtype = DType::kFloat32,
                      .array = {},
                      .problem = {}};
  Result<> status;
  if (auto kind = kind_of(metadata)) {
    leaf.kind = *kind;
    status = describe(leaf, options);
  } else {
    status = std::unexpected(std::move(kind.error()));
  }
  if (!status) {
    status = with_context(std::move(status), fmt::format("leaf \"{}\"", printable(leaf.name)));
    if (!options.keep_damaged) return status;
    leaf.problem = std::move(status.error());
  }
  leaves_.push_back(std::move(leaf));
  return {};
}

Result<> Checkpoint::describe(CheckpointLeaf& leaf, const OpenOptions& options) {
  if (leaf.kind == LeafKind::kEmpty) return {};
  if (leaf.kind == LeafKind::kString) {
    if (strings_.contains(leaf.name)) return {};
    return fail(ErrorKind::kNotFound, "no text in {}", kStringsFile);
  }
  // Without _METADATA the version is told from the store; with it, use_zarr3 decides, as for stock.
  std::optional<zarr::Version> version;
  if (!inferred_) version = tree_metadata_.use_zarr3 ? zarr::Version::kV3 : zarr::Version::kV2;
  const zarr::ReadOptions read_options{
      .fill_missing = options.fill_missing.value_or(!inferred_ && !tree_metadata_.store_equal_to_fill_value),
      .max_chunk_bytes = options.max_chunk_bytes};
  MAXPORT_ASSIGN_OR_RETURN(leaf.array, zarr::ArrayReader::open(*store_, leaf.name, version, read_options));
  leaf.shape = leaf.array->spec().shape;
  leaf.dtype = leaf.array->spec().dtype;
  if (leaf.kind == LeafKind::kScalar && !leaf.shape.empty())
    return fail(ErrorKind::kCorruptData, "a scalar of shape {}", shape_text(leaf.shape));
  return {};
}

const CheckpointLeaf* Checkpoint::find(std::string_view name) const {
  const auto at = std::ranges::lower_bound(leaves_, name, {}, &CheckpointLeaf::name);
  return at != leaves_.end() && at->name == name ? &*at : nullptr;
}

Result<std::shared_ptr<const LazyTensor>> Checkpoint::tensor(const CheckpointLeaf& leaf) const {
  if (leaf.problem) return std::unexpected(*leaf.problem);
  if (!leaf.array)
    return fail(ErrorKind::kInvalidArgument, "leaf \"{}\" of type {} is no array", printable(leaf.name),
                printable(leaf.value_type));
  return array_tensor(*leaf.array);
}

Result<std::variant<int64_t, double>> Checkpoint::scalar(const CheckpointLeaf& leaf) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto values, tensor(leaf));
  if (!leaf.shape.empty() || !can_cast(leaf.dtype, DType::kFloat64))
    return fail(ErrorKind::kInvalidArgument, "leaf \"{}\" of shape {} and type {} is no number", printable(leaf.name),
                shape_text(leaf.shape), dtype_name(leaf.dtype));
  std::byte bytes[8];
  const DType as = is_floating(leaf.dtype) ? DType::kFloat64 : DType::kInt64;
  MAXPORT_RETURN_IF_ERROR(values->read({}, as, bytes));
  if (as == DType::kInt64) return load_le<int64_t>(bytes);
  return std::bit_cast<double>(load_le<uint64_t>(bytes));
}

Result<std::string> Checkpoint::text(const CheckpointLeaf& leaf) const {
  const auto at = strings_.find(leaf.name);
  if (leaf.kind != LeafKind::kString || at == strings_.end())
    return fail(ErrorKind::kInvalidArgument, "leaf \"{}\" of type {} is no string", printable(leaf.name),
                printable(leaf.value_type));
  return at->second;
}

}  // namespace maxport::orbax
