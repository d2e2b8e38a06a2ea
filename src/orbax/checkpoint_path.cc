#include "orbax/checkpoint_path.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "orbax/metadata.h"

namespace maxport::orbax {
namespace {

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string without_trailing_slash(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

std::string listing(std::span<const DirectoryEntry> entries) {
  if (entries.empty()) return "it is empty";
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries.first(std::min<size_t>(entries.size(), 20)))
    names.push_back(printable(entry.name));
  return fmt::format("it holds: {}{}", fmt::join(names, ", "), entries.size() > names.size() ? ", ..." : "");
}

bool has_file(std::span<const DirectoryEntry> entries, std::string_view name) {
  return std::ranges::any_of(entries, [&](const DirectoryEntry& entry) {
    return entry.name == name && entry.kind == EntryKind::kFile;
  });
}

/// True when a directory holds a tree by itself: its metadata, a database, or one directory an array.
Result<bool> is_item(Storage& storage, const std::string& path, std::span<const DirectoryEntry> entries) {
  if (has_file(entries, kTreeMetadataFile) || has_file(entries, "manifest.ocdbt")) return true;
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind != EntryKind::kDirectory || is_temporary_name(entry.name)) continue;
    for (const char* key : {"zarr.json", ".zarray"}) {
      MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(join_path(join_path(path, entry.name), key)));
      if (kind == EntryKind::kFile) return true;
    }
  }
  return false;
}

Result<std::vector<std::string>> items_of(Storage& storage, const std::string& step,
                                          std::span<const DirectoryEntry> entries) {
  std::vector<std::string> items;
  for (const DirectoryEntry& entry : entries) {
    if (entry.kind != EntryKind::kDirectory || is_temporary_name(entry.name)) continue;
    const std::string path = join_path(step, entry.name);
    MAXPORT_ASSIGN_OR_RETURN(const auto children, storage.list(path));
    MAXPORT_ASSIGN_OR_RETURN(const bool item, is_item(storage, path, children));
    if (item) items.push_back(entry.name);
  }
  return items;
}

Result<std::string> choose_item(const std::string& step, std::span<const std::string> items,
                                const std::optional<std::string>& wanted) {
  if (wanted) {
    if (std::ranges::count(items, *wanted) > 0) return *wanted;
    return fail(ErrorKind::kNotFound, "{} has no item \"{}\"; its items: {}", printable(step), printable(*wanted),
                printable(fmt::format("{}", fmt::join(items, ", "))));
  }
  for (const char* usual : {"items", "default", "state"})
    if (std::ranges::count(items, usual) > 0) return std::string(usual);
  if (items.size() == 1) return items[0];
  return fail(ErrorKind::kInvalidArgument, "{} has several items: {}; say which one", printable(step),
              printable(fmt::format("{}", fmt::join(items, ", "))));
}

/// The name of the step to take: `wanted`, or the latest. Nothing when there are no steps.
Result<std::optional<std::string>> choose_step(const std::string& root, std::span<const DirectoryEntry> entries,
                                               std::optional<int64_t> wanted) {
  std::vector<std::pair<int64_t, std::string>> steps;
  for (const DirectoryEntry& entry : entries)
    if (const auto number = step_number(entry.name); number && entry.kind == EntryKind::kDirectory)
      steps.emplace_back(*number, entry.name);
  if (steps.empty()) return std::nullopt;
  if (!wanted) return std::ranges::max(steps).second;
  for (const auto& [number, name] : steps)
    if (number == *wanted) return name;
  std::vector<int64_t> numbers;
  for (const auto& step : steps) numbers.push_back(step.first);
  std::ranges::sort(numbers);
  return fail(ErrorKind::kNotFound, "{} has no step {}; its steps: {}", printable(root), *wanted,
              fmt::join(numbers, ", "));
}

std::unexpected<Error> nothing_there(const std::string& path, std::span<const DirectoryEntry> entries) {
  for (const DirectoryEntry& entry : entries)
    if (is_temporary_name(entry.name))
      return fail(ErrorKind::kNotFound, "{} holds no finished checkpoint; {} was not committed", printable(path),
                  printable(entry.name));
  return fail(ErrorKind::kNotFound, "{} holds no Orbax checkpoint; {}", printable(path), listing(entries));
}

/// The step above an item directory, if there is one.
Result<> add_step_above(Storage& storage, CheckpointPath& found) {
  const std::string parent = parent_path(found.item_directory);
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(join_path(parent, kStepMetadataFile)));
  if (kind != EntryKind::kFile) return {};
  found.step_directory = parent;
  found.item = base_name(found.item_directory);
  found.step = step_number(base_name(parent));
  MAXPORT_ASSIGN_OR_RETURN(const auto entries, storage.list(parent));
  MAXPORT_ASSIGN_OR_RETURN(found.items, items_of(storage, parent, entries));
  return {};
}

}  // namespace

std::optional<int64_t> step_number(std::string_view name) {
  const size_t underscore = name.rfind('_');
  const std::string_view digits = underscore == std::string_view::npos ? name : name.substr(underscore + 1);
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || digits[0] == '-' || problem != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return number;
}

bool is_temporary_name(std::string_view name) { return name.contains(kTemporarySuffix); }

Result<CheckpointPath> resolve_checkpoint(Storage& storage, const std::string& path, std::optional<int64_t> step,
                                          const std::optional<std::string>& item) {
  const std::string clean = without_trailing_slash(path);
  if (is_temporary_name(clean))
    return fail(ErrorKind::kInvalidArgument,
                "{} was not committed: the save that wrote it did not end; repeat or resume it", printable(clean));
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(clean));
  if (kind != EntryKind::kDirectory)
    return fail(ErrorKind::kNotFound, "{} is {}; expected a checkpoint directory", printable(clean),
                kind ? "not a directory" : "not there");
  MAXPORT_ASSIGN_OR_RETURN(const auto entries, storage.list(clean));
  MAXPORT_ASSIGN_OR_RETURN(const bool single, is_item(storage, clean, entries));
  if (single) {
    CheckpointPath found{.item_directory = clean, .step_directory = {}, .item = {}, .step = {}, .items = {}};
    if (has_file(entries, kStepMetadataFile))
      found.step_directory = clean;
    else
      MAXPORT_RETURN_IF_ERROR(add_step_above(storage, found));
    return found;
  }
  MAXPORT_ASSIGN_OR_RETURN(std::vector<std::string> items, items_of(storage, clean, entries));
  if (!items.empty()) {
    MAXPORT_ASSIGN_OR_RETURN(std::string name, choose_item(clean, items, item));
    return CheckpointPath{.item_directory = join_path(clean, name),
                          .step_directory = clean,
                          .item = name,
                          .step = step_number(base_name(clean)),
                          .items = std::move(items)};
  }
  MAXPORT_ASSIGN_OR_RETURN(const auto name, choose_step(clean, entries, step));
  if (!name) return nothing_there(clean, entries);
  const std::string chosen = join_path(clean, *name);
  MAXPORT_ASSIGN_OR_RETURN(const auto children, storage.list(chosen));
  MAXPORT_ASSIGN_OR_RETURN(const bool flat, is_item(storage, chosen, children));
  if (!flat) {
    MAXPORT_ASSIGN_OR_RETURN(items, items_of(storage, chosen, children));
    if (items.empty()) return nothing_there(chosen, children);
  }
  return resolve_checkpoint(storage, chosen, {}, item);
}

}  // namespace maxport::orbax
