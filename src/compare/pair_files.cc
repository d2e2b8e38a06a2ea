// Hugging Face with Hugging Face: tensors of one name.
#include <map>

#include "compare/pairs.h"
#include "huggingface/model_directory.h"

namespace maxport::compare {
namespace {

/// The tensors of a model folder, or of one file without any configuration.
struct FileTensors {
  struct Item {
    size_t shard;
    const safetensors::TensorInfo* info;
  };
  std::unique_ptr<huggingface::ModelDirectory> directory;
  std::unique_ptr<huggingface::ShardSet> file;
  std::map<std::string, Item, std::less<>> tensors;

  const huggingface::ShardSet& shards() const { return directory ? directory->shards() : *file; }
};

Result<std::unique_ptr<FileTensors>> open_files(Storage& storage, const std::string& path) {
  auto out = std::make_unique<FileTensors>();
  MAXPORT_ASSIGN_OR_RETURN(const convert::PathKind kind, convert::path_kind(storage, path));
  if (kind == convert::PathKind::kWeightFile) {
    out->file = std::make_unique<huggingface::ShardSet>(storage, 1);
    MAXPORT_RETURN_IF_ERROR(out->file->add(path, path, safetensors::MetadataPolicy::kStrict));
    for (const safetensors::TensorInfo& tensor : out->file->shards()[0]->header.tensors) out->tensors[tensor.name] = {0, &tensor};
    return out;
  }
  MAXPORT_ASSIGN_OR_RETURN(out->directory, huggingface::ModelDirectory::open(storage, path));
  for (const auto& [name, entry] : out->directory->tensors()) {
    MAXPORT_ASSIGN_OR_RETURN(const huggingface::TensorEntry found, out->directory->find(name));
    out->tensors[std::string(name)] = {found.file, found.info};
  }
  return out;
}

std::string described(const FileTensors& files) {
  return files.directory ? "Hugging Face, " + printable(files.directory->roles().model_type()) : "one weight file";
}

}  // namespace

Result<> pair_files(Storage& storage, const std::string& a, const std::string& b, Pairs& pairs) {
  MAXPORT_ASSIGN_OR_RETURN(auto opened_a, open_files(storage, a));
  MAXPORT_ASSIGN_OR_RETURN(auto opened_b, open_files(storage, b));
  const FileTensors &left = pairs.keep(std::move(opened_a)), &right = pairs.keep(std::move(opened_b));
  pairs.report().a = described(left);
  pairs.report().b = described(right);
  pairs.report().how = "tensors of one name";
  for (const auto& [name, item] : right.tensors)
    if (!left.tensors.contains(name)) pairs.only_in(false, name, {item.info->dtype, item.info->shape});
  for (const auto& [name, item] : left.tensors) {
    const auto found = right.tensors.find(name);
    if (found == right.tensors.end()) {
      pairs.only_in(true, name, {item.info->dtype, item.info->shape});
      continue;
    }
    const WindowReader& mine = pairs.keep(read_file_tensor(left.shards(), item.shard, *item.info));
    const WindowReader& theirs = pairs.keep(read_file_tensor(right.shards(), found->second.shard, *found->second.info));
    pairs.add_whole(name, true, mine, {item.info->dtype, item.info->shape}, theirs, {found->second.info->dtype, found->second.info->shape});
  }
  return {};
}

}  // namespace maxport::compare
