#include "huggingface/model_directory.h"

#include <algorithm>
#include <set>

namespace maxport::huggingface {
namespace {

using safetensors::quoted_name;

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;
constexpr std::string_view kSuffix = ".safetensors";
/// Names shown in one message.
constexpr size_t kShown = 10;
/// Warnings kept; a hostile index could cause one a tensor.
constexpr size_t kMaxWarnings = 200;

/// "a, b, c and 4 more"
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", printable(names[i]));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Weights in formats that are recognised by name in order to say so.
bool is_foreign_weights(std::string_view name) {
  if (name == "training_args.bin" || name == "optimizer.bin") return false;
  for (std::string_view suffix : {".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".ckpt", ".npz"})
    if (name.ends_with(suffix)) return true;
  return false;
}

}  // namespace

ModelDirectory::ModelDirectory(Storage& storage, std::string folder, OpenOptions options)
    : storage_(storage),
      folder_(std::move(folder)),
      options_(std::move(options)),
      shards_(storage, options_.max_open_files) {}

std::string ModelDirectory::path_of(std::string_view name) const { return join_path(folder_, name); }

bool ModelDirectory::has_entry(std::string_view name) const {
  return std::ranges::find(entries_, name, &DirectoryEntry::name) != entries_.end();
}

void ModelDirectory::warn(std::string text) {
  if (warnings_.size() < kMaxWarnings)
    warnings_.push_back(std::move(text));
  else
    ++unshown_warnings_;
}

Result<std::unique_ptr<ModelDirectory>> ModelDirectory::open(Storage& storage, const std::string& folder,
                                                             const OpenOptions& options) {
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(folder));
  if (!kind) return fail(ErrorKind::kNotFound, "{}: there is no such folder", printable(folder));
  if (*kind != EntryKind::kDirectory)
    return fail(ErrorKind::kInvalidArgument, "{}: is not a folder; give the folder that holds {}", printable(folder),
                options.config_name);
  std::unique_ptr<ModelDirectory> model(new ModelDirectory(storage, folder, options));
  MAXPORT_ASSIGN_OR_RETURN(model->entries_, storage.list(folder));
  MAXPORT_RETURN_IF_ERROR(model->enter_snapshot());
  MAXPORT_RETURN_IF_ERROR(model->load_config());
  MAXPORT_RETURN_IF_ERROR(model->load_weights());
  for (std::string& note : model->roles_->notes()) model->warn(std::move(note));
  for (const auto& shard : model->files())
    for (const std::string& note : shard->header.notes)
      model->warn(fmt::format("{}: {}", printable(shard->name), note));
  if (model->unshown_warnings_ > 0)
    model->warnings_.push_back(fmt::format("{} more warnings are not shown", model->unshown_warnings_));
  return model;
}

// A repository in the hub's cache: refs/main holds the name of a folder under snapshots/.
Result<> ModelDirectory::enter_snapshot() {
  if (has_entry(options_.config_name) || !has_entry("snapshots") || !has_entry("refs")) return {};
  auto revision = storage_.read_text(path_of("refs/main"), 256);
  if (!revision)
    return fail(ErrorKind::kNotFound,
                "{}: a repository of the hub's cache without refs/main; give one of the folders "
                "under snapshots/",
                printable(folder_));
  const std::string name = revision->substr(0, revision->find_first_of("\r\n"));
  if (!is_plain_relative_path(name))
    return fail(ErrorKind::kCorruptData, "{}: refs/main holds {}, which is not the name of a snapshot",
                printable(folder_), quoted_name(name));
  folder_ = path_of("snapshots/" + name);
  MAXPORT_ASSIGN_OR_RETURN(entries_, storage_.list(folder_));
  return {};
}

Result<> ModelDirectory::load_config() {
  const std::string path = path_of(options_.config_name);
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage_.kind(path));
  if (!kind) {
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : entries_) names.push_back(entry.name);
    return fail(ErrorKind::kNotFound,
                "{}: there is no {} in it, so it is not a model folder or a download is "
                "incomplete; it holds {}",
                printable(folder_), options_.config_name, names.empty() ? "nothing" : listed(names));
  }
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, storage_.read_text(path, kMaxConfigBytes));
  MAXPORT_ASSIGN_OR_RETURN(Json config, parse_json(text, printable(path)));
  MAXPORT_ASSIGN_OR_RETURN(roles_, ConfigRoles::create(std::move(config), printable(path)));
  return {};
}

// Entries that are links to nothing count: they are files whose content is missing.
std::vector<std::string> ModelDirectory::weight_files() const {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries_)
    if (entry.name.ends_with(kSuffix) && !entry.name.starts_with("consolidated") && entry.kind != EntryKind::kDirectory)
      names.push_back(entry.name);
  return names;
}

Result<> ModelDirectory::load_weights() {
  const std::string single = options_.weights_stem + std::string(kSuffix);
  const std::string index_name = single + ".index.json";
  const std::vector<std::string> candidates = weight_files();
  if (options_.ignore_index && !candidates.empty()) {
    MAXPORT_RETURN_IF_ERROR(load_files(candidates));
    if (has_entry(index_name)) warn(fmt::format("{}: ignored as asked for", index_name));
    MAXPORT_RETURN_IF_ERROR(collect_all());
  } else if (has_entry(index_name)) {
    return load_indexed(index_name);
  } else if (has_entry(single)) {
    MAXPORT_RETURN_IF_ERROR(load_files({single}));
    MAXPORT_RETURN_IF_ERROR(collect_all());
  } else {
    return no_weights();
  }
  std::vector<std::string> used;
  for (const auto& shard : files()) used.push_back(shard->name);
  warn_about_unlisted(used);
  return {};
}

std::unexpected<Error> ModelDirectory::no_weights() const {
  const std::string single = options_.weights_stem + std::string(kSuffix);
  const std::vector<std::string> candidates = weight_files();
  if (!candidates.empty())
    return fail(ErrorKind::kNotFound,
                "{}: neither {} nor {}.index.json is there, only {}; looks like an incomplete "
                "download (--ignore_index takes all of them as one model)",
                printable(folder_), single, single, listed(candidates));
  for (const DirectoryEntry& entry : entries_) {
    if (entry.name.starts_with("consolidated") && entry.name.ends_with(kSuffix))
      return fail(ErrorKind::kUnsupported,
                  "{}: holds {}, which is in its authors' own layout; use a repository with {}", printable(folder_),
                  printable(entry.name), single);
  }
  for (const DirectoryEntry& entry : entries_) {
    if (is_foreign_weights(entry.name))
      return fail(ErrorKind::kUnsupported,
                  "{}: holds {} but no safetensors; convert it first, for example by loading "
                  "the model with transformers and calling save_pretrained",
                  printable(folder_), printable(entry.name));
  }
  return fail(ErrorKind::kNotFound, "{}: there is no {}; looks like an incomplete download", printable(folder_),
              single);
}

Result<> ModelDirectory::load_files(const std::vector<std::string>& names) {
  for (const std::string& name : names) MAXPORT_RETURN_IF_ERROR(shards_.add(name, path_of(name), options_.metadata));
  return {};
}

Result<> ModelDirectory::collect_all() {
  for (size_t file = 0; file < files().size(); ++file) {
    for (const safetensors::TensorInfo& tensor : files()[file]->header.tensors) {
      const auto [at, is_new] = tensors_.emplace(tensor.name, TensorEntry{&tensor, file});
      if (!is_new)
        return fail(ErrorKind::kCorruptData,
                    "{}: tensor {} is in both {} and {}; remove the file that does not belong "
                    "to the model",
                    printable(folder_), quoted_name(tensor.name), printable(files()[at->second.file]->name),
                    printable(files()[file]->name));
    }
  }
  return {};
}

Result<> ModelDirectory::load_indexed(std::string_view index_name) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, storage_.read_text(path_of(index_name), kMaxIndexBytes));
  MAXPORT_ASSIGN_OR_RETURN(const Index index, parse_index(text, index_name, printable(path_of(index_name))));
  MAXPORT_RETURN_IF_ERROR(check_present(index, index_name));
  MAXPORT_RETURN_IF_ERROR(load_files(index.files));
  for (const std::string& warning : index.warnings) warn(warning);
  warn_about_unlisted(index.files);
  collect_indexed(index);
  return {};
}

Result<> ModelDirectory::check_present(const Index& index, std::string_view index_name) const {
  std::vector<std::string> missing, unlisted;
  for (const std::string& name : index.files) {
    MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage_.kind(path_of(name)));
    if (!kind) missing.push_back(name);
  }
  if (missing.empty()) return {};
  const std::string stray = options_.weights_stem + std::string(kSuffix);
  for (const std::string& name : weight_files())
    if (name != stray && !name.starts_with("adapter_") && !holds(index.files, name)) unlisted.push_back(name);
  if (!unlisted.empty())
    return fail(ErrorKind::kNotFound,
                "{}: {} is stale: it lists {}, not there, and does not list {}; download the model again, or take the "
                "files for one model with --ignore_index",
                printable(folder_), index_name, listed(missing), listed(unlisted));
  return fail(ErrorKind::kNotFound,
              "{}: {} of {} weight files are missing: {}; looks like an incomplete download, repeat "
              "it",
              printable(folder_), missing.size(), index.files.size(), listed(missing));
}

void ModelDirectory::collect_indexed(const Index& index) {
  std::map<std::string_view, std::string_view> elsewhere;  // tensors in the header of a file they are not listed for
  uint64_t total = 0;
  for (size_t file = 0; file < files().size(); ++file) {
    const Shard& shard = *files()[file];
    for (const safetensors::TensorInfo& tensor : shard.header.tensors) {
      const auto listed_in = index.weight_map.find(tensor.name);
      if (listed_in != index.weight_map.end() && listed_in->second == shard.name) {
        tensors_.emplace(tensor.name, TensorEntry{&tensor, file});
        total += tensor.byte_size();
        continue;
      }
      elsewhere.emplace(tensor.name, shard.name);
      if (listed_in == index.weight_map.end())
        disputed_.emplace(tensor.name, fmt::format("tensor {} is in {}, but the index does not list it; "
                                                   "--ignore_index takes it in",
                                                   quoted_name(tensor.name), printable(shard.name)));
      else
        warn(fmt::format("tensor {} is also in {}; the index says {}, which is used", quoted_name(tensor.name),
                         printable(shard.name), printable(listed_in->second)));
    }
  }
  for (const auto& [name, file] : index.weight_map) {
    if (tensors_.contains(name)) continue;
    const auto other = elsewhere.find(name);
    disputed_.emplace(name, fmt::format("tensor {} is listed in the index for {}, absent in shard {}{}",
                                        quoted_name(name), printable(file), printable(file),
                                        other == elsewhere.end()
                                            ? std::string("; download that file again, or the index is wrong")
                                            : fmt::format(" but present in {}; the index is stale, --ignore_index "
                                                          "does without it",
                                                          printable(other->second))));
  }
  for (const auto& [name, problem] : disputed_) warn(problem);
  if (index.total_size && *index.total_size != total && disputed_.empty())
    warn(fmt::format("the index states a total_size of {}, its tensors have {} bytes", *index.total_size, total));
}

void ModelDirectory::warn_about_unlisted(const std::vector<std::string>& used) {
  const std::string single = options_.weights_stem + std::string(kSuffix);
  for (const DirectoryEntry& entry : entries_) {
    if (!entry.name.ends_with(kSuffix) || holds(used, entry.name)) continue;
    if (entry.name.starts_with("consolidated"))
      warn(fmt::format("{}: ignored, it holds the weights once more in another layout", printable(entry.name)));
    else if (entry.name == single)
      warn(fmt::format("{}: not opened, the index lists other files", printable(entry.name)));
    else
      warn(fmt::format("{}: not opened, it is not part of the model", printable(entry.name)));
  }
}

Result<TensorEntry> ModelDirectory::find(std::string_view name) const {
  if (const auto at = tensors_.find(name); at != tensors_.end()) return at->second;
  if (const auto problem = disputed_.find(name); problem != disputed_.end())
    return fail(ErrorKind::kNotFound, "{}: {}", printable(folder_), problem->second);
  return fail(ErrorKind::kNotFound, "{}: no file of the model holds tensor {}", printable(folder_), quoted_name(name));
}

Result<> ModelDirectory::read(std::string_view name, uint64_t byte_offset, MutableByteSpan out) const {
  MAXPORT_ASSIGN_OR_RETURN(const TensorEntry tensor, find(name));
  return read(tensor, byte_offset, out);
}

}  // namespace maxport::huggingface
