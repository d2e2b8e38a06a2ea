// Reads a checkpoint: its tree, the types and shapes of its leaves, and their values.
//
// formats.md 3 and 4; everything that stock Orbax v0 and v1 write, in OCDBT databases and in directories, Zarr v2 and v3.
// Safe for any number of threads after open().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "orbax/checkpoint_path.h"
#include "orbax/lazy_tensor.h"
#include "orbax/metadata.h"
#include "orbax/tree.h"
#include "storage/key_value_store.h"
#include "storage/storage.h"
#include "zarr/array_reader.h"
#include "zarr/metadata.h"

namespace maxport::orbax {

enum class LeafKind {
  kArray,
  kScalar,  ///< a Python number: an array without axes
  kString,
  kEmpty,  ///< an empty container or None; value_type says which
};

struct CheckpointLeaf {
  TreePath path;
  std::string name;        ///< parameter name
  std::string value_type;  ///< as recorded
  LeafKind kind = LeafKind::kArray;
  Shape shape;                         ///< of kArray and kScalar
  DType dtype = DType::kFloat32;       ///< of kArray and kScalar
  std::optional<zarr::ArrayReader> array;  ///< of kArray and kScalar that are sound
  std::optional<Error> problem;        ///< why the leaf cannot be read; only with OpenOptions::keep_damaged
};

struct OpenOptions {
  std::optional<int64_t> step = {};      ///< of a directory of steps; the latest otherwise
  std::optional<std::string> item = {};  ///< of a step with several items
  /// Missing chunks read as the fill value. Unset: as the checkpoint's own metadata says (formats.md 2.3).
  std::optional<bool> fill_missing = {};
  /// Leaves whose metadata cannot be read do not make open() fail but carry the problem.
  bool keep_damaged = false;
  uint64_t max_chunk_bytes = zarr::ReadOptions{}.max_chunk_bytes;
};

class Checkpoint {
 public:
  /// `path` may be a directory of steps, a step, or an item (resolve_checkpoint); `storage` must outlive the checkpoint.
  /// An item without `_METADATA` is read as nested dictionaries if the names of its arrays allow that; notes() says so.
  static Result<std::unique_ptr<Checkpoint>> open(Storage& storage, const std::string& path,
                                                  const OpenOptions& options = {});

  const CheckpointPath& path() const { return path_; }
  const StepMetadata& step_metadata() const { return step_metadata_; }
  const TreeMetadata& tree_metadata() const { return tree_metadata_; }
  bool uses_ocdbt() const { return uses_ocdbt_; }
  /// What was odd but did not hinder reading, for the user.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Sorted by parameter name.
  const std::vector<CheckpointLeaf>& leaves() const { return leaves_; }
  /// The leaf of this parameter name, or null.
  const CheckpointLeaf* find(std::string_view name) const;

  /// The elements of a kArray or kScalar leaf, read when asked for. The tensor shares the store but not its life: the
  /// checkpoint must outlive it.
  Result<std::shared_ptr<const LazyTensor>> tensor(const CheckpointLeaf& leaf) const;
  /// The value of a kScalar leaf: integers and booleans as int64_t, floating types as double.
  Result<std::variant<int64_t, double>> scalar(const CheckpointLeaf& leaf) const;
  Result<std::string> text(const CheckpointLeaf& leaf) const;

  KeyValueReader& store() const { return *store_; }

 private:
  Checkpoint() = default;

  Result<> read_step_metadata(Storage& storage);
  Result<> open_store(Storage& storage);
  Result<> read_tree(Storage& storage);
  Result<> infer_tree();
  Result<> read_strings(Storage& storage);
  Result<> add_leaf(const LeafMetadata& metadata, const OpenOptions& options);
  Result<> describe(CheckpointLeaf& leaf, const OpenOptions& options);

  CheckpointPath path_;
  StepMetadata step_metadata_;
  TreeMetadata tree_metadata_;
  bool uses_ocdbt_ = false;
  bool inferred_ = false;
  std::unique_ptr<KeyValueReader> store_;
  std::vector<CheckpointLeaf> leaves_;
  std::map<std::string, std::string> strings_;
  std::vector<std::string> notes_;
};

}  // namespace maxport::orbax
