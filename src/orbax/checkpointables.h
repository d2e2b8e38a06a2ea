// Which handler saves and loads an item of a checkpoint, by the item's name ("items").
//
// Registries form a chain of two: a local one may include the global one, and what it does not know is looked up there.
// Saving and loading take an optional local registry; without one the global registry is used.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "orbax/leaf_handler.h"

namespace maxport::orbax {

/// How a tree is written: the type string for the step's metadata, and the handlers of its leaves.
struct TreeHandler {
  std::string type;
  LeafHandlerRegistry leaves;

  /// kTreeHandlerType with the standard leaf handlers.
  static TreeHandler standard();
};

/// Safe for any number of threads.
class CheckpointablesRegistry {
 public:
  explicit CheckpointablesRegistry(bool include_global) : include_global_(include_global) {}

  /// The process-wide registry. It begins with the standard tree handler for "items".
  static CheckpointablesRegistry& global();

  /// A name that this registry itself already has is kInvalidArgument; one of the global registry may be given again.
  Result<> add(std::string name, TreeHandler handler);
  /// kNotFound names the item and what is registered.
  Result<std::shared_ptr<const TreeHandler>> find(std::string_view name) const;
  /// Own names and, when included, global ones.
  std::vector<std::string> names() const;

 private:
  std::shared_ptr<const TreeHandler> find_own(std::string_view name) const;

  const bool include_global_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const TreeHandler>, std::less<>> handlers_;
};

/// The handler for an item: from `registry`, or from the global registry where that is null. Whatever registry it comes
/// from, its leaves include lazy tensors.
Result<std::shared_ptr<const TreeHandler>> resolve_tree_handler(const CheckpointablesRegistry* registry,
                                                                std::string_view name);

}  // namespace maxport::orbax
