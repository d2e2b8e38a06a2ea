// Writes one step of a checkpoint under a temporary name and publishes it with one rename (formats.md 3.1).
//
//   <base>/<step>.orbax-checkpoint-tmp/   _CHECKPOINT_METADATA, commit_success.txt
//     items/                              _METADATA, commit_success.txt, the store; with devices also _sharding,
//                                         array_metadatas/process_0; with strings _strings.json
//
// The writer makes everything but the arrays' chunks: those the caller puts into values(), in segments from
// kFirstFreeSegment on, under the keys of zarr::chunk_key. The bytes of the step depend on leaves and options only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "orbax/checkpointables.h"
#include "orbax/leaf_handler.h"
#include "orbax/metadata.h"
#include "storage/key_value_store.h"
#include "storage/storage.h"
#include "zarr/array_spec.h"

namespace maxport::orbax {

/// A leaf as it will be stored; arrays by their layout.
struct WriteLeaf {
  TreePath path;
  std::string value_type;  ///< what readers will find recorded
  std::variant<zarr::ArraySpec, int64_t, double, std::string, EmptyLeaf> content;

  std::string name() const { return parameter_name(path); }
  const zarr::ArraySpec* array() const { return std::get_if<zarr::ArraySpec>(&content); }
};

/// Gives every tensor of the resolved leaves its layout.
Result<std::vector<WriteLeaf>> lay_out(std::span<const ResolvedLeaf> leaves,
                                       const std::function<Result<zarr::ArraySpec>(const ResolvedLeaf&)>& layout);

struct CheckpointWriterOptions {
  std::string item = "items";
  std::string handler_type = std::string(kTreeHandlerType);
  bool use_ocdbt = true;
  zarr::Version version = zarr::Version::kV3;
  zarr::Compression compression = zarr::Compression::kZstd;  ///< of scalars; arrays bring their own
  /// Arrays are recorded as jax.Array, cut over this many devices as MaxText does it; unset: as np.ndarray.
  std::optional<int64_t> devices = {};
  Json custom_metadata = Json::object();  ///< of the step, e.g. {"scan_layers": true}
  int64_t init_timestamp_nsecs = 0;       ///< since 1970
  int64_t commit_timestamp_nsecs = 0;
  /// What the names of data files are derived from, besides the leaves: e.g. the digest of the plan.
  std::string seed = {};
  /// OCDBT: where data files go, below the item; "ocdbt.process_0/d/" looks like stock.
  std::string data_folder = "d/";
  bool sync = true;    ///< makes everything durable before the rename, and the rename itself
  bool resume = false;   ///< goes on in a temporary directory that is there; otherwise it is removed first
  bool replace = false;  ///< a step that exists is no error at once; the caller moves it away before commit()
};

class CheckpointWriter {
 public:
  /// Segment 0 of the store holds the arrays' metadata and the scalars.
  static constexpr uint64_t kFirstFreeSegment = 1;

  /// Checks everything that can be checked before writing, then makes the temporary directory and segment 0. An existing
  /// step is kInvalidArgument: it is never overwritten. So are leaves that are no tree, arrays of size zero (Orbax has
  /// none), layouts of another Zarr version, names that the store cannot hold. kIo when another process is writing there.
  static Result<std::unique_ptr<CheckpointWriter>> create(Storage& storage, std::string base_directory, int64_t step,
                                                          std::vector<WriteLeaf> leaves,
                                                          CheckpointWriterOptions options);

  const std::vector<WriteLeaf>& leaves() const { return leaves_; }
  KeyValueWriter& values() { return *values_; }

  /// Where the step is being written, and where it will be.
  const std::string& temporary_directory() const { return temporary_; }
  std::string item_directory() const { return join_path(temporary_, options_.item); }
  const std::string& final_directory() const { return final_; }

  /// A plain file beside the tree or in the step, made at commit; stock readers ignore it. `name` is a file name, none of
  /// Orbax's own.
  Result<> add_item_file(std::string name, std::string text);
  Result<> add_step_file(std::string name, std::string text);

  /// The files that describe the step and its tree, as commit() will write them: path below the step, and text. Known from
  /// the start, so that a record of them can go into a step file.
  const std::vector<std::pair<std::string, std::string>>& describing_files() const { return describing_files_; }

  /// Finishes the store, writes all other files, and renames the step. Call once, after every segment was finished or
  /// adopted. Fails without harm to anything under a final name; what was written stays for a resumed run.
  Result<> commit();
  /// Removes the temporary directory. A writer that is destroyed without commit() or discard() leaves it for a resumed run.
  Result<> discard();

 private:
  CheckpointWriter(Storage& storage, std::string base, int64_t step, std::vector<WriteLeaf> leaves,
                   CheckpointWriterOptions options);

  Result<> prepare_directories();
  Result<> open_store(std::string_view tree);
  Result<> write_first_segment();
  Result<> write_item_files();
  Result<> write_step_files();
  Result<> sync_directories();
  TreeMetadata tree_metadata() const;
  std::vector<std::pair<std::string, std::string>> make_describing_files(std::string tree) const;

  Storage& storage_;
  std::string base_;
  int64_t step_;
  std::vector<WriteLeaf> leaves_;
  CheckpointWriterOptions options_;
  std::string temporary_;
  std::string final_;
  std::vector<std::string> made_directories_;  // parents whose new entries must be made durable
  std::vector<std::pair<std::string, std::string>> describing_files_, item_files_, step_files_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<KeyValueWriter> values_;
};

}  // namespace maxport::orbax
