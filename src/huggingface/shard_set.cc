#include "huggingface/shard_set.h"

#include <algorithm>

namespace maxport::huggingface {
namespace {

Result<> check_stamp(const Shard& shard, const ReadableFile& file) {
  MAXPORT_ASSIGN_OR_RETURN(const FileStamp now, file.stamp());
  if (now == shard.stamp) return {};
  return fail(ErrorKind::kIo, "{}: the file changed after its header was read (size {}, then {}); run again",
              printable(shard.path), shard.stamp.size, now.size);
}

}  // namespace

Result<> ShardSet::add(std::string name, const std::string& path, safetensors::MetadataPolicy policy) {
  MAXPORT_ASSIGN_OR_RETURN(auto file, safetensors::File::open(storage_, path, policy));
  auto shard = std::make_unique<Shard>();
  shard->name = std::move(name);
  shard->path = path;
  shard->stamp = file->stamp();
  shard->header_digest = file->header_digest();
  shard->header = file->release_header();
  remember(shards_.size(), file->release_file());
  shards_.push_back(std::move(shard));
  return {};
}

void ShardSet::remember(size_t index, std::shared_ptr<const ReadableFile> file) const {
  const std::lock_guard lock(mutex_);
  open_.push_front({index, std::move(file)});
  while (open_.size() > std::max<size_t>(max_open_, 1)) open_.pop_back();
}

Result<std::shared_ptr<const ReadableFile>> ShardSet::open(size_t index) const {
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(open_, index, &Open::index);
    if (at != open_.end()) {
      open_.splice(open_.begin(), open_, at);
      return at->file;
    }
  }
  const Shard& shard = *shards_[index];
  MAXPORT_ASSIGN_OR_RETURN(std::shared_ptr<const ReadableFile> file, storage_.open(shard.path));
  MAXPORT_RETURN_IF_ERROR(check_stamp(shard, *file));
  remember(index, file);
  return file;
}

Result<> ShardSet::read(size_t index, const safetensors::TensorInfo& tensor, uint64_t byte_offset,
                        MutableByteSpan out) const {
  const Shard& shard = *shards_[index];
  MAXPORT_RETURN_IF_ERROR(safetensors::check_range(tensor, byte_offset, out.size(), shard.path));
  MAXPORT_ASSIGN_OR_RETURN(const auto file, open(index));
  return with_context(file->read_at(tensor.begin + byte_offset, out),
                      fmt::format("reading tensor {}", safetensors::quoted_name(tensor.name)));
}

Result<> ShardSet::check_unchanged() const {
  for (size_t i = 0; i < shards_.size(); ++i) {
    MAXPORT_ASSIGN_OR_RETURN(const auto file, open(i));
    MAXPORT_RETURN_IF_ERROR(check_stamp(*shards_[i], *file));
  }
  return {};
}

}  // namespace maxport::huggingface
