// Writing a model folder: shards, index, config and side files, first under a working name, then renamed in one step.
//
//   TARGET.maxport-tmp/   while it is being written; a second writer refuses to start, a later run may go on with it
//   TARGET/               when everything is durable
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "huggingface/shard_plan.h"
#include "huggingface/side_files.h"
#include "storage/storage.h"

namespace maxport::huggingface {

/// What to do with a working folder that is there already.
enum class Leftover {
  kRefuse,   ///< somebody else may be writing it
  kResume,   ///< go on, keeping what was written; only for the same tensors and options
  kReplace,  ///< begin anew
};

struct WriterOptions {
  std::string max_shard_size = std::string(kDefaultMaxShardSize);
  Leftover leftover = Leftover::kRefuse;
  bool sync = true;  ///< publish() makes everything durable first
  size_t max_open_files = 32;
  std::map<std::string, std::string> metadata = safetensors::kTorchMetadata;
  std::string weights_stem = "model";  ///< "adapter_model" for an adapter
  std::string config_name = "config.json";
};

/// write() and sync() are safe from several threads, write() for disjoint ranges; the rest is for one thread.
class ShardedWriter {
 public:
  /// Plans the files and creates the working folder. Fails with kInvalidArgument when the target is there and not
  /// empty. `storage` must outlive the writer.
  static Result<std::unique_ptr<ShardedWriter>> create(Storage& storage, const std::string& target,
                                                       std::vector<safetensors::TensorSpec> tensors,
                                                       const WriterOptions& options = {});

  const ShardPlan& plan() const { return plan_; }
  const std::vector<safetensors::TensorSpec>& tensors() const { return tensors_; }
  /// Everything is written here until publish(); a place for a journal too, which must be gone by then.
  const std::string& working_folder() const { return working_; }

  /// Stores bytes of tensor `tensor` (into the specs) from `byte_offset` within it on. The caller sees to it that every
  /// byte is written.
  Result<> write(size_t tensor, uint64_t byte_offset, ByteSpan bytes);
  /// Makes everything that was written so far durable.
  Result<> sync();
  /// Writes index and config, makes all durable and gives the folder its name.
  Result<> publish(const Json& config);
  /// Removes the working folder.
  Result<> discard();

 private:
  struct Open {
    size_t file;
    std::shared_ptr<safetensors::FileWriter> writer;
  };

  ShardedWriter(Storage& storage, std::string target, std::vector<safetensors::TensorSpec> tensors,
                WriterOptions options);
  Result<> prepare_folders();
  Result<> lay_out_files();
  /// The writer of a file; `to_write` says that it will have something to sync afterwards.
  Result<std::shared_ptr<safetensors::FileWriter>> open(size_t file, bool to_write);
  Result<> check_complete(size_t file) const;
  Result<> move_into_place();

  Storage& storage_;
  std::string target_;
  std::string working_;
  std::vector<safetensors::TensorSpec> tensors_;
  WriterOptions options_;
  ShardPlan plan_;
  std::vector<safetensors::Layout> layouts_;  // one a file
  std::mutex mutex_;
  std::vector<bool> begun_;  // files that exist with their header
  std::vector<bool> unsynced_;
  std::list<Open> open_;  // most recently used first
};

}  // namespace maxport::huggingface
