#include "orbax/checkpointables.h"

#include <fmt/ranges.h>

#include <set>

#include "orbax/metadata.h"

namespace maxport::orbax {

TreeHandler TreeHandler::standard() { return {std::string(kTreeHandlerType), LeafHandlerRegistry::standard()}; }

CheckpointablesRegistry& CheckpointablesRegistry::global() {
  static CheckpointablesRegistry* registry = [] {
    auto* made = new CheckpointablesRegistry(false);
    MAXPORT_CHECK(made->add("items", TreeHandler::standard()).has_value());
    return made;
  }();
  return *registry;
}

Result<> CheckpointablesRegistry::add(std::string name, TreeHandler handler) {
  const std::scoped_lock lock(mutex_);
  if (handlers_.contains(name))
    return fail(ErrorKind::kInvalidArgument, "checkpointable \"{}\" already has a handler", printable(name));
  handlers_.emplace(std::move(name), std::make_shared<const TreeHandler>(std::move(handler)));
  return {};
}

std::shared_ptr<const TreeHandler> CheckpointablesRegistry::find_own(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  const auto at = handlers_.find(name);
  return at == handlers_.end() ? nullptr : at->second;
}

Result<std::shared_ptr<const TreeHandler>> CheckpointablesRegistry::find(std::string_view name) const {
  if (auto handler = find_own(name)) return handler;
  if (include_global_)
    if (auto handler = global().find_own(name)) return handler;
  return fail(ErrorKind::kNotFound, "no handler is registered for the checkpointable \"{}\"; registered: {}",
              printable(name), printable(fmt::format("{}", fmt::join(names(), ", "))));
}

std::vector<std::string> CheckpointablesRegistry::names() const {
  std::set<std::string> all;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [name, handler] : handlers_) all.insert(name);
  }
  if (include_global_)
    for (std::string& name : global().names()) all.insert(std::move(name));
  return {all.begin(), all.end()};
}

Result<std::shared_ptr<const TreeHandler>> resolve_tree_handler(const CheckpointablesRegistry* registry,
                                                                std::string_view name) {
  MAXPORT_ASSIGN_OR_RETURN(auto found, (registry ? *registry : CheckpointablesRegistry::global()).find(name));
  if (found->leaves.find(kLazyTensorLeaf)) return found;
  TreeHandler with_tensors = *found;
  with_tensors.leaves.ensure_lazy_tensors();
  return std::make_shared<const TreeHandler>(std::move(with_tensors));
}

}  // namespace maxport::orbax
