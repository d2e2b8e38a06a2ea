#include "convert/path_kind.h"

#include <algorithm>

namespace maxport::convert {

Result<PathKind> path_kind(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(path));
  if (!kind) return fail(ErrorKind::kNotFound, "{} is not there", printable(path));
  if (*kind == EntryKind::kFile) return PathKind::kWeightFile;
  MAXPORT_ASSIGN_OR_RETURN(const auto entries, storage.list(path));
  const auto has = [&](std::string_view name) { return std::ranges::find(entries, name, &DirectoryEntry::name) != entries.end(); };
  const bool weights = std::ranges::any_of(entries, [](const DirectoryEntry& entry) {
    return entry.name.ends_with(".safetensors") || entry.name.ends_with(".safetensors.index.json");
  });
  if (has("_METADATA") || has("_CHECKPOINT_METADATA") || has("manifest.ocdbt")) return PathKind::kCheckpoint;
  if (weights || has("config.json") || (has("snapshots") && has("refs"))) return PathKind::kModelFolder;
  return PathKind::kCheckpoint;
}

}  // namespace maxport::convert
