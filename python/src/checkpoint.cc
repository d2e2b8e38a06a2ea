#include "checkpoint.h"

#include <algorithm>
#include <string>

#include "file_tensors.h"
#include "huggingface/model_directory.h"
#include "orbax/checkpoint.h"
#include "safetensors/file.h"

namespace maxport::python {
namespace {

Shape ones(const Shape& shape) { return Shape(shape.size(), 1); }

class FilesCheckpoint final : public Checkpoint {
 public:
  static Result<std::shared_ptr<Checkpoint>> open(Storage& storage, const std::vector<std::string>& paths) {
    auto opened = std::make_shared<FilesCheckpoint>();
    opened->format = "safetensors";
    Json metadata = Json::object();
    for (const std::string& file : paths) {
      MAXPORT_ASSIGN_OR_RETURN(auto reader, safetensors::File::open(storage, file));
      MAXPORT_RETURN_IF_ERROR(opened->add(*reader));
      for (const auto& [key, value] : reader->metadata()) metadata[key] = value;
      opened->files_.push_back(std::move(reader));
    }
    opened->metadata = metadata.dump();
    return opened;
  }

 private:
  Result<> add(const safetensors::File& file) {
    for (const safetensors::TensorInfo& info : file.tensors()) {
      auto lazy = file_tensor(info, [&file, &info](uint64_t offset, MutableByteSpan out) {
        return file.read(info, offset, out);
      });
      if (!tensors.emplace(info.name, NamedTensor{std::move(lazy), ones(info.shape)}).second)
        return fail(ErrorKind::kCorruptData, "{}: tensor {} is in another file of the folder too",
                    printable(file.path()), safetensors::quoted_name(info.name));
    }
    for (const std::string& note : file.notes()) notes.push_back(file.path() + ": " + note);
    return {};
  }

  std::vector<std::unique_ptr<safetensors::File>> files_;
};

class ModelCheckpoint final : public Checkpoint {
 public:
  static Result<std::shared_ptr<Checkpoint>> open(Storage& storage, const std::string& folder,
                                                  const huggingface::OpenOptions& options) {
    auto opened = std::make_shared<ModelCheckpoint>();
    MAXPORT_ASSIGN_OR_RETURN(opened->model_, huggingface::ModelDirectory::open(storage, folder, options));
    const huggingface::ModelDirectory& model = *opened->model_;
    opened->format = "huggingface";
    opened->path = model.folder();
    opened->config = model.config().dump();
    opened->notes = model.warnings();
    for (const auto& [name, entry] : model.tensors()) {
      auto lazy = file_tensor(*entry.info, [&model, entry](uint64_t offset, MutableByteSpan out) {
        return model.read(entry, offset, out);
      });
      opened->tensors.emplace(std::string(name), NamedTensor{std::move(lazy), ones(entry.info->shape)});
    }
    return opened;
  }

 private:
  std::unique_ptr<huggingface::ModelDirectory> model_;
};

class OrbaxCheckpoint final : public Checkpoint {
 public:
  static Result<std::shared_ptr<Checkpoint>> open(Storage& storage, const std::string& path,
                                                  const orbax::OpenOptions& options) {
    auto opened = std::make_shared<OrbaxCheckpoint>();
    MAXPORT_ASSIGN_OR_RETURN(opened->checkpoint_, orbax::Checkpoint::open(storage, path, options));
    const orbax::Checkpoint& checkpoint = *opened->checkpoint_;
    opened->format = "orbax";
    opened->path = checkpoint.path().item_directory;
    opened->metadata = checkpoint.step_metadata().custom_metadata.dump();
    opened->notes = checkpoint.notes();
    for (const orbax::CheckpointLeaf& leaf : checkpoint.leaves()) MAXPORT_RETURN_IF_ERROR(opened->add(leaf));
    return opened;
  }

 private:
  Result<> add(const orbax::CheckpointLeaf& leaf) {
    LeafPath& path = paths[leaf.name];
    for (const orbax::KeyPart& part : leaf.path) {
      if (part.sequence) path.emplace_back(int64_t{std::stoll(part.key)});
      else path.emplace_back(part.key);
    }
    if (leaf.kind == orbax::LeafKind::kString) {
      MAXPORT_ASSIGN_OR_RETURN(texts[leaf.name], checkpoint_->text(leaf));
    } else if (leaf.kind == orbax::LeafKind::kEmpty) {
      empties.emplace(leaf.name, leaf.value_type);
    } else {
      MAXPORT_ASSIGN_OR_RETURN(auto lazy, checkpoint_->tensor(leaf));
      tensors.emplace(leaf.name, NamedTensor{std::move(lazy), leaf.array->spec().chunk_shape});
    }
    return {};
  }

  std::unique_ptr<orbax::Checkpoint> checkpoint_;
};

bool is_weight_file(const DirectoryEntry& entry) {
  return entry.kind == EntryKind::kFile && entry.name.ends_with(".safetensors");
}

/// Opens a folder that holds a Hugging Face model, adapter or loose files; null when it holds none of them.
Result<std::shared_ptr<Checkpoint>> open_folder(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.list(path));
  const auto has = [&](std::string_view name) {
    return std::ranges::find(entries, name, &DirectoryEntry::name) != entries.end();
  };
  if (has("config.json") || has("snapshots")) return ModelCheckpoint::open(storage, path, {});
  if (has("adapter_config.json"))
    return ModelCheckpoint::open(storage, path, {.weights_stem = "adapter_model", .config_name = "adapter_config.json"});
  std::vector<std::string> files;
  for (const DirectoryEntry& entry : entries)
    if (is_weight_file(entry)) files.push_back(join_path(path, entry.name));
  if (!files.empty()) return FilesCheckpoint::open(storage, files);
  return std::shared_ptr<Checkpoint>();
}

}  // namespace

Result<std::shared_ptr<Checkpoint>> Checkpoint::open(Storage& storage, const std::string& path,
                                                     std::optional<int64_t> step,
                                                     const std::optional<std::string>& item) {
  MAXPORT_ASSIGN_OR_RETURN(const std::optional<EntryKind> kind, storage.kind(path));
  if (!kind) return fail(ErrorKind::kNotFound, "opening {}: nothing is there", printable(path));
  std::shared_ptr<Checkpoint> opened;
  if (*kind == EntryKind::kDirectory) {
    MAXPORT_ASSIGN_OR_RETURN(opened, open_folder(storage, path));
  } else {
    MAXPORT_ASSIGN_OR_RETURN(opened, FilesCheckpoint::open(storage, {path}));
  }
  if (opened && (step || item))
    return fail(ErrorKind::kInvalidArgument, "opening {}: a step or item was asked for, but this is not an Orbax "
                "checkpoint", printable(path));
  if (!opened) return OrbaxCheckpoint::open(storage, path, {.step = step, .item = item});
  if (opened->path.empty()) opened->path = path;
  return opened;
}

}  // namespace maxport::python
