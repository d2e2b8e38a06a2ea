// Which leaves can be saved, and what of them a reader will find: leaf handlers, and the registry that chooses one.
//
// Stock readers choose how to restore a leaf by the type string that its writer recorded (formats.md 4.2), and know only
// `np.ndarray`, `jax.Array`, `scalar`, `string` and five markers of empty nodes. So a handler may have any name, but
// must record one of those; registering another is refused, since it would write checkpoints that cannot be loaded.
#pragma once

#include <any>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "orbax/lazy_tensor.h"
#include "orbax/tree.h"

namespace maxport::orbax {

/// What is stored for a leaf.
struct EmptyLeaf {};
using LeafContent =
    std::variant<std::shared_ptr<const LazyTensor>, int64_t, double, std::string, EmptyLeaf>;

/// A leaf that is to be saved: a value of any C++ type under the name by which a handler for it is found.
struct Leaf {
  TreePath path = {};
  std::string type = {};
  std::any value = {};
};

/// The names of the types that the standard registry handles, and what Leaf::value holds.
inline constexpr std::string_view kLazyTensorLeaf = "LazyTensor";  ///< std::shared_ptr<const LazyTensor>
inline constexpr std::string_view kIntLeaf = "int";                ///< int64_t
inline constexpr std::string_view kFloatLeaf = "float";            ///< double
inline constexpr std::string_view kTextLeaf = "str";               ///< std::string
inline constexpr std::string_view kDictLeaf = "dict";              ///< nothing: an empty dictionary
inline constexpr std::string_view kListLeaf = "list";              ///< nothing: an empty list
inline constexpr std::string_view kTupleLeaf = "tuple";            ///< nothing: an empty tuple
inline constexpr std::string_view kNoneLeaf = "None";              ///< nothing

Leaf tensor_leaf(TreePath path, std::shared_ptr<const LazyTensor> tensor);
Leaf int_leaf(TreePath path, int64_t value);
Leaf empty_dict_leaf(TreePath path);

/// Stateless, so safe for any number of threads.
class LeafHandler {
 public:
  virtual ~LeafHandler() = default;
  /// For messages.
  virtual std::string name() const = 0;
  /// The type string that is recorded for leaves of this handler.
  virtual std::string recorded_type() const = 0;
  /// Other recorded strings that this handler's leaves may be restored under.
  virtual std::vector<std::string> secondary_types() const { return {}; }
  /// What to store. A value of another C++ type than the leaf's type name promises is kInvalidArgument.
  virtual Result<LeafContent> content(const Leaf& leaf) const = 0;
};

/// Leaf types to handlers.
class LeafHandlerRegistry {
 public:
  /// Lazy tensors, integers, floats, strings, empty containers and None.
  static LeafHandlerRegistry standard();

  /// Refuses (kInvalidArgument, with the reason) a handler that records a string that stock readers do not know, a
  /// secondary string of that kind, and a leaf type that already has a handler.
  Result<> add(std::string leaf_type, std::shared_ptr<const LeafHandler> handler);
  /// Gives lazy tensors their standard handler, unless they have one.
  void ensure_lazy_tensors();

  /// The handler of a leaf type, or null.
  std::shared_ptr<const LeafHandler> find(std::string_view leaf_type) const;
  /// The handler that records this string or lists it as secondary, or null.
  std::shared_ptr<const LeafHandler> find_recorded(std::string_view recorded_type) const;

  std::vector<std::string> leaf_types() const;

 private:
  std::map<std::string, std::shared_ptr<const LeafHandler>, std::less<>> handlers_;
};

/// A leaf together with what its handler makes of it.
struct ResolvedLeaf {
  TreePath path;
  std::string value_type;
  LeafContent content;
};

/// Finds a handler for every leaf, before anything is written. A miss is kUnsupported and names the leaf's path, its
/// type and the types that are known.
Result<std::vector<ResolvedLeaf>> resolve_leaves(const LeafHandlerRegistry& registry, std::span<const Leaf> leaves);

}  // namespace maxport::orbax
