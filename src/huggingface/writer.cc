#include "huggingface/writer.h"

#include <algorithm>

namespace maxport::huggingface {
namespace {

constexpr std::string_view kWorkingSuffix = ".maxport-tmp";

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

/// Nothing there, or an empty folder.
Result<bool> is_free(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(path));
  if (!kind) return true;
  if (*kind != EntryKind::kDirectory) return false;
  MAXPORT_ASSIGN_OR_RETURN(const auto entries, storage.list(path));
  return entries.empty();
}

}  // namespace

ShardedWriter::ShardedWriter(Storage& storage, std::string target, std::vector<safetensors::TensorSpec> tensors,
                             WriterOptions options)
    : storage_(storage),
      target_(without_trailing_slashes(std::move(target))),
      working_(target_ + std::string(kWorkingSuffix)),
      tensors_(std::move(tensors)),
      options_(std::move(options)) {}

Result<std::unique_ptr<ShardedWriter>> ShardedWriter::create(Storage& storage, const std::string& target,
                                                             std::vector<safetensors::TensorSpec> tensors,
                                                             const WriterOptions& options) {
  std::unique_ptr<ShardedWriter> writer(new ShardedWriter(storage, target, std::move(tensors), options));
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t max_shard_bytes, parse_shard_size(options.max_shard_size));
  MAXPORT_ASSIGN_OR_RETURN(writer->plan_, plan_shards(writer->tensors_, max_shard_bytes, options.weights_stem));
  MAXPORT_RETURN_IF_ERROR(writer->lay_out_files());
  MAXPORT_RETURN_IF_ERROR(writer->prepare_folders());
  return writer;
}

Result<> ShardedWriter::lay_out_files() {
  for (const ShardFile& file : plan_.files) {
    std::vector<safetensors::TensorSpec> specs;
    for (size_t tensor : file.tensors) specs.push_back(tensors_[tensor]);
    MAXPORT_ASSIGN_OR_RETURN(auto layout,
                             safetensors::layout_file(specs, safetensors::Order::kReference, options_.metadata));
    layouts_.push_back(std::move(layout));
  }
  begun_.resize(plan_.files.size());
  unsynced_.resize(plan_.files.size());
  return {};
}

Result<> ShardedWriter::prepare_folders() {
  MAXPORT_ASSIGN_OR_RETURN(const bool target_free, is_free(storage_, target_));
  if (!target_free)
    return fail(ErrorKind::kInvalidArgument, "{}: is there already; choose another folder or remove it",
                printable(target_));
  MAXPORT_ASSIGN_OR_RETURN(const bool working_free, is_free(storage_, working_));
  if (!working_free && options_.leftover == Leftover::kRefuse)
    return fail(ErrorKind::kInvalidArgument,
                "{}: another run is writing it or was interrupted; let it finish, go on with "
                "--resume, or remove it",
                printable(working_));
  if (options_.leftover == Leftover::kReplace) MAXPORT_RETURN_IF_ERROR(storage_.remove_all(working_));
  return storage_.make_directories(working_);
}

Result<std::shared_ptr<safetensors::FileWriter>> ShardedWriter::open(size_t file, bool to_write) {
  const std::lock_guard lock(mutex_);
  if (to_write) unsynced_[file] = true;
  const auto at = std::ranges::find(open_, file, &Open::file);
  if (at != open_.end()) {
    open_.splice(open_.begin(), open_, at);
    return at->writer;
  }
  const std::string path = join_path(working_, plan_.files[file].name);
  const bool keep = begun_[file] || options_.leftover == Leftover::kResume;
  auto opened = keep ? safetensors::FileWriter::resume(storage_, path, layouts_[file])
                     : safetensors::FileWriter::create(storage_, path, layouts_[file]);
  if (!opened) return std::unexpected(std::move(opened).error());
  begun_[file] = true;
  open_.push_front({file, std::move(*opened)});
  while (open_.size() > std::max<size_t>(options_.max_open_files, 1)) open_.pop_back();
  return open_.front().writer;
}

Result<> ShardedWriter::write(size_t tensor, uint64_t byte_offset, ByteSpan bytes) {
  MAXPORT_CHECK(tensor < tensors_.size());
  const ShardPlan::Place place = plan_.places[tensor];
  MAXPORT_ASSIGN_OR_RETURN(const auto writer, open(place.file, true));
  return writer->write(place.index, byte_offset, bytes);
}

// Syncing a file through another descriptor than the one that wrote it covers all its data.
Result<> ShardedWriter::sync() {
  for (size_t file = 0; file < plan_.files.size(); ++file) {
    {
      const std::lock_guard lock(mutex_);
      if (!unsynced_[file]) continue;
      unsynced_[file] = false;
    }
    MAXPORT_ASSIGN_OR_RETURN(const auto writer, open(file, false));
    if (auto synced = writer->sync(); !synced) {
      const std::lock_guard lock(mutex_);
      unsynced_[file] = true;
      return synced;
    }
  }
  return storage_.sync_directory(working_);
}

Result<> ShardedWriter::check_complete(size_t file) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto written, storage_.open(join_path(working_, plan_.files[file].name)));
  if (written->size() == layouts_[file].file_size) return {};
  return fail(ErrorKind::kInternal, "{}: {} bytes were written, expected {}", printable(written->path()),
              written->size(), layouts_[file].file_size);
}

Result<> ShardedWriter::publish(const Json& config) {
  for (size_t file = 0; file < plan_.files.size(); ++file) {
    // Also creates the files of which nothing was written: tensors may all be empty.
    MAXPORT_ASSIGN_OR_RETURN(const auto writer, open(file, false));
    if (options_.sync) MAXPORT_RETURN_IF_ERROR(writer->sync());
    MAXPORT_RETURN_IF_ERROR(check_complete(file));
  }
  open_.clear();
  if (plan_.sharded())
    MAXPORT_RETURN_IF_ERROR(storage_.write_text(join_path(working_, options_.weights_stem + ".safetensors.index.json"),
                                                file_text(index_json(plan_, tensors_))));
  MAXPORT_RETURN_IF_ERROR(storage_.write_text(join_path(working_, options_.config_name), file_text(config)));
  if (options_.sync) MAXPORT_RETURN_IF_ERROR(storage_.sync_directory(working_));
  return move_into_place();
}

// A target that somebody made as an empty folder is moved aside, not removed: it may have been filled meanwhile.
Result<> ShardedWriter::move_into_place() {
  const auto taken = [&] {
    return fail(ErrorKind::kInvalidArgument, "{}: somebody else has written it meanwhile; the finished model is in {}",
                printable(target_), printable(working_));
  };
  const std::string aside = target_ + ".maxport-old";
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage_.kind(target_));
  if (kind) {
    if (*kind != EntryKind::kDirectory) return taken();
    MAXPORT_RETURN_IF_ERROR(storage_.rename(target_, aside));
    MAXPORT_ASSIGN_OR_RETURN(const auto entries, storage_.list(aside));
    if (!entries.empty()) {
      MAXPORT_RETURN_IF_ERROR(storage_.rename(aside, target_));
      return taken();
    }
  }
  MAXPORT_RETURN_IF_ERROR(storage_.rename(working_, target_));
  if (kind) MAXPORT_RETURN_IF_ERROR(storage_.remove_all(aside));
  return storage_.sync_directory(parent_path(target_));
}

Result<> ShardedWriter::discard() {
  open_.clear();
  return storage_.remove_all(working_);
}

}  // namespace maxport::huggingface
