// Finding the item that a path means: a checkpoint directory holds steps, a step holds items, an item holds a tree.
//
// formats.md 3.1. Directories with ".orbax-checkpoint-tmp" in their names are unfinished; they are never taken.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/storage.h"

namespace maxport::orbax {

struct CheckpointPath {
  std::string item_directory;
  /// The step's directory; empty for an item directory that belongs to no step.
  std::string step_directory;
  std::string item;            ///< empty where step and item are one directory
  std::optional<int64_t> step;  ///< where the step's name says one
  std::vector<std::string> items;  ///< all items of the step
};

/// The number in a step's name, "[prefix_]<digits>".
std::optional<int64_t> step_number(std::string_view name);

/// True for names of directories that a save has not finished.
bool is_temporary_name(std::string_view name);

/// Resolves `path`, which may be a checkpoint directory (its latest step is taken, or `step`), a step (its item `item`, or
/// "items", "default" or "state", or the only one), or an item. Without anything that fits it is kNotFound, and the
/// message lists what is there; several items to choose from are kInvalidArgument.
Result<CheckpointPath> resolve_checkpoint(Storage& storage, const std::string& path,
                                          std::optional<int64_t> step = {}, const std::optional<std::string>& item = {});

}  // namespace maxport::orbax
