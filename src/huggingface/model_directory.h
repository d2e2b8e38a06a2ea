// A Hugging Face model folder: config.json, and the tensors of model.safetensors or of the files that
// model.safetensors.index.json lists. Also a folder of the hub's cache, where every file is a link.
//
// Opening reads configuration and headers, never weights. The index decides what belongs to the model: other weight
// files are named in warnings() and not opened. Where index and headers disagree about a tensor, that is a warning
// until somebody needs the tensor; then find() tells what is wrong. Reading is safe from several threads.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "huggingface/config_roles.h"
#include "huggingface/index.h"
#include "huggingface/shard_set.h"

namespace maxport::huggingface {

struct OpenOptions {
  /// Take every safetensors file in the folder (but no consolidated*) instead of what the index lists.
  bool ignore_index = false;
  /// Data files held open at once.
  size_t max_open_files = 64;
  /// For listing damaged files.
  safetensors::MetadataPolicy metadata = safetensors::MetadataPolicy::kStrict;
  /// The names model.safetensors and model.safetensors.index.json begin with; "adapter_model" for an adapter.
  std::string weights_stem = "model";
  std::string config_name = "config.json";
};

struct TensorEntry {
  const safetensors::TensorInfo* info = nullptr;
  size_t file = 0;  ///< into files()
};

class ModelDirectory {
 public:
  /// Fails with kNotFound for what a broken download lacks, kCorruptData for what is malformed or contradicts itself,
  /// kUnsupported for weights in another format. `storage` must outlive the result.
  static Result<std::unique_ptr<ModelDirectory>> open(Storage& storage, const std::string& folder,
                                                      const OpenOptions& options = {});

  /// The folder that is read: the one asked for, or the snapshot when that was a repository in the hub's cache.
  const std::string& folder() const { return folder_; }
  const Json& config() const { return roles_->root(); }
  const ConfigRoles& roles() const { return *roles_; }

  /// Every tensor of the model, by name.
  const std::map<std::string_view, TensorEntry>& tensors() const { return tensors_; }
  /// A tensor that is needed. kNotFound names it and says how index and headers contradict each other about it.
  Result<TensorEntry> find(std::string_view name) const;

  /// Fills `out` with stored bytes, from `byte_offset` within the tensor on.
  Result<> read(const TensorEntry& tensor, uint64_t byte_offset, MutableByteSpan out) const {
    return shards_.read(tensor.file, *tensor.info, byte_offset, out);
  }
  Result<> read(std::string_view name, uint64_t byte_offset, MutableByteSpan out) const;

  /// The weight files in the order of their names, with stamp and header digest.
  const std::vector<std::unique_ptr<const Shard>>& files() const { return shards_.shards(); }
  const ShardSet& shards() const { return shards_; }
  /// kIo when a weight file has been replaced or changed since it was opened.
  Result<> check_unchanged() const { return shards_.check_unchanged(); }

  /// What a user should know about: stray files, contradictions that concern no needed tensor, odd headers.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  ModelDirectory(Storage& storage, std::string folder, OpenOptions options);

  Result<> enter_snapshot();
  Result<> load_config();
  Result<> load_weights();
  Result<> load_indexed(std::string_view index_name);
  Result<> load_files(const std::vector<std::string>& names);
  Result<> collect_all();
  void collect_indexed(const Index& index);
  Result<> check_present(const Index& index, std::string_view index_name) const;
  std::unexpected<Error> no_weights() const;
  void warn_about_unlisted(const std::vector<std::string>& used);
  void warn(std::string text);
  bool has_entry(std::string_view name) const;
  std::vector<std::string> weight_files() const;
  std::string path_of(std::string_view name) const;

  Storage& storage_;
  std::string folder_;
  OpenOptions options_;
  std::vector<DirectoryEntry> entries_;
  std::optional<ConfigRoles> roles_;
  ShardSet shards_;
  std::map<std::string_view, TensorEntry> tensors_;           // keys live in the shards' headers
  std::map<std::string, std::string, std::less<>> disputed_;  // tensor -> what is wrong with it
  std::vector<std::string> warnings_;
  size_t unshown_warnings_ = 0;
};

}  // namespace maxport::huggingface
