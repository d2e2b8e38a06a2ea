#include "huggingface/side_files.h"

#include <algorithm>
#include <array>

namespace maxport::huggingface {
namespace {

/// Tokenizers have tens of megabytes at most.
constexpr uint64_t kMaxSideFileBytes = uint64_t{1} << 30;
constexpr std::string_view kTemplateFolder = "additional_chat_templates";

constexpr std::array<std::string_view, 21> kNames = {"added_tokens.json",
                                                     "audio_tokenizer_config.json",
                                                     "chat_template.json",
                                                     "generation_config.json",
                                                     "image_processor_config.json",
                                                     "merges.txt",
                                                     "normalizer.json",
                                                     "preprocessor_config.json",
                                                     "processor_config.json",
                                                     "sentencepiece.bpe.model",
                                                     "special_tokens_map.json",
                                                     "spiece.model",
                                                     "tekken.json",
                                                     "tokenizer.json",
                                                     "tokenizer.model",
                                                     "tokenizer.model.v3",
                                                     "tokenizer_config.json",
                                                     "video_preprocessor_config.json",
                                                     "vocab.bpe",
                                                     "vocab.json",
                                                     "vocab.txt"};

std::string_view parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

/// What links may lead to: the folder itself, or the whole repository where the folder is a snapshot in the hub's
/// cache.
Result<std::string> repository_of(Storage& storage, const std::string& folder) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string real, storage.real_path(folder));
  const std::string_view above = parent_of(real);
  if (!above.ends_with("/snapshots")) return real;
  return std::string(parent_of(above));
}

Result<SideFile> checked(Storage& storage, const std::string& folder, const std::string& name,
                         const std::string& repository) {
  SideFile file{name, join_path(folder, name), 0};
  MAXPORT_ASSIGN_OR_RETURN(const std::string real, storage.real_path(file.path));
  if (!real.starts_with(join_path(repository, "x").substr(0, repository.size() + 1)))
    return fail(ErrorKind::kInvalidArgument, "{}: is a link out of the model's folder to {}; put the file itself there",
                printable(file.path), printable(real));
  MAXPORT_ASSIGN_OR_RETURN(const auto readable, storage.open(file.path));
  file.size = readable->size();
  if (file.size > kMaxSideFileBytes)
    return fail(ErrorKind::kResourceLimit, "{}: has {} bytes, more than the {} that a file of its kind may have",
                printable(file.path), file.size, kMaxSideFileBytes);
  return file;
}

Result<> copy_file(Storage& from, const SideFile& file, Storage& to, const std::string& target) {
  constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
  MAXPORT_ASSIGN_OR_RETURN(const auto source, from.open(file.path));
  MAXPORT_ASSIGN_OR_RETURN(const auto copy, to.create(target));
  Bytes piece(static_cast<size_t>(std::min(kPieceBytes, file.size)));
  for (uint64_t at = 0; at < file.size; at += kPieceBytes) {
    const MutableByteSpan part(piece.data(), static_cast<size_t>(std::min(kPieceBytes, file.size - at)));
    MAXPORT_RETURN_IF_ERROR(source->read_at(at, part));
    MAXPORT_RETURN_IF_ERROR(copy->write_at(at, part));
  }
  MAXPORT_RETURN_IF_ERROR(copy->sync());
  return copy->close();
}

}  // namespace

bool is_side_file(std::string_view name) {
  if (std::ranges::find(kNames, name) != kNames.end()) return true;
  return name.ends_with(".jinja") || name.ends_with(".tiktoken") || name == "LICENSE" || name == "LICENSE.txt" ||
         name == "LICENSE.md" || name == "NOTICE" || name == "NOTICE.txt";
}

Result<std::vector<SideFile>> find_side_files(Storage& storage, const std::string& folder) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string repository, repository_of(storage, folder));
  std::vector<SideFile> files;
  std::vector<std::string> names;
  MAXPORT_ASSIGN_OR_RETURN(const auto entries, storage.list(folder));
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind != EntryKind::kDirectory && is_side_file(entry.name)) names.push_back(entry.name);
    if (entry.kind != EntryKind::kDirectory || entry.name != kTemplateFolder) continue;
    MAXPORT_ASSIGN_OR_RETURN(const auto templates, storage.list(join_path(folder, entry.name)));
    for (const DirectoryEntry& item : templates)
      if (item.kind != EntryKind::kDirectory && item.name.ends_with(".jinja"))
        names.push_back(join_path(kTemplateFolder, item.name));
  }
  std::ranges::sort(names);
  for (const std::string& name : names) {
    MAXPORT_ASSIGN_OR_RETURN(SideFile file, checked(storage, folder, name, repository));
    files.push_back(std::move(file));
  }
  return files;
}

Result<> copy_side_files(Storage& from, std::span<const SideFile> files, Storage& to, const std::string& folder) {
  for (const SideFile& file : files) {
    const std::string target = join_path(folder, file.name);
    if (file.name.find('/') != std::string::npos)
      MAXPORT_RETURN_IF_ERROR(to.make_directories(std::string(parent_of(target))));
    MAXPORT_RETURN_IF_ERROR(
        with_context(copy_file(from, file, to, target), fmt::format("copying {}", printable(file.name))));
  }
  if (!files.empty()) MAXPORT_RETURN_IF_ERROR(to.sync_directory(folder));
  return {};
}

}  // namespace maxport::huggingface
