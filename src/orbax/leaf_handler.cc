#include "orbax/leaf_handler.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "orbax/metadata.h"

namespace maxport::orbax {
namespace {

std::string leaf_text(const Leaf& leaf) {
  return fmt::format("leaf \"{}\" of type {}", printable(parameter_name(leaf.path)), printable(leaf.type));
}

/// Leaves whose value has the C++ type T.
template <class T>
class ValueHandler final : public LeafHandler {
 public:
  ValueHandler(std::string name, std::string_view recorded, std::vector<std::string> secondary = {})
      : name_(std::move(name)), recorded_(recorded), secondary_(std::move(secondary)) {}

  std::string name() const override { return name_; }
  std::string recorded_type() const override { return recorded_; }
  std::vector<std::string> secondary_types() const override { return secondary_; }

  Result<LeafContent> content(const Leaf& leaf) const override {
    if constexpr (std::is_same_v<T, EmptyLeaf>) {
      return LeafContent(EmptyLeaf{});
    } else {
      const T* value = std::any_cast<T>(&leaf.value);
      if (!value)
        return fail(ErrorKind::kInvalidArgument, "{} holds a value that {} cannot take", leaf_text(leaf), name_);
      if constexpr (std::is_same_v<T, std::shared_ptr<const LazyTensor>>) {
        if (!*value) return fail(ErrorKind::kInvalidArgument, "{} holds no tensor", leaf_text(leaf));
      }
      return LeafContent(*value);
    }
  }

 private:
  std::string name_;
  std::string recorded_;
  std::vector<std::string> secondary_;
};

/// Lazy tensors restore everywhere as `np.ndarray`; written for a mesh of devices they are `jax.Array`.
std::shared_ptr<const LeafHandler> lazy_tensor_handler() {
  return std::make_shared<ValueHandler<std::shared_ptr<const LazyTensor>>>("LazyTensorHandler", kNumpyType,
                                                                           std::vector{std::string(kJaxType)});
}

Result<> check_recorded(const LeafHandler& handler, std::string_view type) {
  if (is_stock_type(type)) return {};
  return fail(ErrorKind::kInvalidArgument,
              "leaf handler {} records the type \"{}\", which stock Orbax does not know, so a checkpoint with it could "
              "not be loaded; record np.ndarray, jax.Array, scalar or string instead",
              printable(handler.name()), printable(type));
}

}  // namespace

Leaf tensor_leaf(TreePath path, std::shared_ptr<const LazyTensor> tensor) {
  return {std::move(path), std::string(kLazyTensorLeaf), std::move(tensor)};
}

Leaf int_leaf(TreePath path, int64_t value) { return {std::move(path), std::string(kIntLeaf), value}; }

Leaf empty_dict_leaf(TreePath path) { return {std::move(path), std::string(kDictLeaf), {}}; }

LeafHandlerRegistry LeafHandlerRegistry::standard() {
  LeafHandlerRegistry registry;
  registry.ensure_lazy_tensors();
  auto& handlers = registry.handlers_;
  handlers.emplace(kIntLeaf, std::make_shared<ValueHandler<int64_t>>("IntHandler", kScalarType));
  handlers.emplace(kFloatLeaf, std::make_shared<ValueHandler<double>>("FloatHandler", kScalarType));
  handlers.emplace(kTextLeaf, std::make_shared<ValueHandler<std::string>>("StringHandler", kStringType));
  const std::pair<std::string_view, std::string_view> markers[] = {
      {kDictLeaf, kEmptyDictType}, {kListLeaf, kEmptyListType}, {kTupleLeaf, kEmptyTupleType}, {kNoneLeaf, kNoneType}};
  for (const auto& [type, marker] : markers)
    handlers.emplace(type, std::make_shared<ValueHandler<EmptyLeaf>>("EmptyNodeHandler", marker));
  return registry;
}

Result<> LeafHandlerRegistry::add(std::string leaf_type, std::shared_ptr<const LeafHandler> handler) {
  MAXPORT_RETURN_IF_ERROR(check_recorded(*handler, handler->recorded_type()));
  for (const std::string& type : handler->secondary_types()) MAXPORT_RETURN_IF_ERROR(check_recorded(*handler, type));
  const auto at = handlers_.find(leaf_type);
  if (at != handlers_.end())
    return fail(ErrorKind::kInvalidArgument, "leaf type {} already has a handler, {}", printable(leaf_type),
                printable(at->second->name()));
  handlers_.emplace(std::move(leaf_type), std::move(handler));
  return {};
}

void LeafHandlerRegistry::ensure_lazy_tensors() {
  if (!handlers_.contains(kLazyTensorLeaf)) handlers_.emplace(kLazyTensorLeaf, lazy_tensor_handler());
}

std::shared_ptr<const LeafHandler> LeafHandlerRegistry::find(std::string_view leaf_type) const {
  const auto at = handlers_.find(leaf_type);
  return at == handlers_.end() ? nullptr : at->second;
}

std::shared_ptr<const LeafHandler> LeafHandlerRegistry::find_recorded(std::string_view recorded_type) const {
  for (const auto& [type, handler] : handlers_)
    if (handler->recorded_type() == recorded_type) return handler;
  for (const auto& [type, handler] : handlers_)
    if (std::ranges::count(handler->secondary_types(), recorded_type) > 0) return handler;
  return nullptr;
}

std::vector<std::string> LeafHandlerRegistry::leaf_types() const {
  std::vector<std::string> types;
  for (const auto& [type, handler] : handlers_) types.push_back(type);
  return types;
}

Result<std::vector<ResolvedLeaf>> resolve_leaves(const LeafHandlerRegistry& registry, std::span<const Leaf> leaves) {
  std::vector<ResolvedLeaf> resolved;
  for (const Leaf& leaf : leaves) {
    const auto handler = registry.find(leaf.type);
    if (!handler)
      return fail(ErrorKind::kUnsupported, "{}: no handler is registered for this type; known types: {}",
                  leaf_text(leaf), printable(fmt::format("{}", fmt::join(registry.leaf_types(), ", "))));
    MAXPORT_ASSIGN_OR_RETURN(LeafContent content, handler->content(leaf));
    resolved.push_back({leaf.path, handler->recorded_type(), std::move(content)});
  }
  return resolved;
}

}  // namespace maxport::orbax
