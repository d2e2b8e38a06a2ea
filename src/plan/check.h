// Proof that a plan accounts for everything, and the account itself: every source tensor used or ignored by a named
// rule, every target element filled exactly once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "plan/plan.h"

namespace maxport::plan {

/// A tensor of the source as it is on disk.
struct SourceTensor {
  std::string name;
  DType dtype;
  Shape shape;
};

enum class FaultKind {
  kMissing,      ///< the plan needs a tensor that the source does not hold
  kUnused,       ///< the source holds a tensor that nothing uses and no rule ignores
  kWrongShape,   ///< source and plan disagree about a shape
  kUnfilled,     ///< elements of a target that nothing fills
  kFilledTwice,  ///< elements of a target that two sources fill
  kPartlyUsed,   ///< elements of a source tensor that nothing uses
  kUsedTwice,    ///< elements of a source tensor that are used twice
  kOutside,      ///< a walk leaves its tensor
};

std::string_view fault_name(FaultKind kind);

struct Fault {
  FaultKind kind;
  std::string name;  ///< of the tensor or leaf
  std::string text;  ///< the whole sentence
};

struct IgnoredTensor {
  std::string name;
  std::string reason;
};

/// What the check found. With no faults the conversion is complete.
struct Account {
  std::vector<Fault> faults;
  std::vector<IgnoredTensor> ignored;
  size_t tensors_used = 0;
  size_t leaves_filled = 0;
  int64_t elements = 0;            ///< of all leaves
  int64_t elements_filled_in = 0;  ///< by a constant (padding)

  bool good() const { return faults.empty(); }
};

/// Checks the plan in itself: both sides covered exactly once, except where a rule says otherwise.
Result<std::vector<Fault>> check_cover(const Plan& plan);

/// Checks the plan against the tensors of a source. `source` is sorted by name.
Result<Account> check(const Plan& plan, const models::ParameterMap& map, const std::vector<SourceTensor>& source);

/// A parameter of a MaxText checkpoint, named like Leaf::checkpoint_name().
struct HeldLeaf {
  std::string name;
  Shape shape;
};

/// Checks the plan against the parameters of a checkpoint, for the way back: all there, none besides, shapes as planned
/// (so layers stacked along the planned axes). Cover is check_cover's.
std::vector<Fault> check_leaves(const Plan& plan, const std::vector<HeldLeaf>& held);

/// One error that names every fault (up to a screenful), for a plan that is not good.
Error to_error(const Account& account);

/// The plan and its account as JSON: tensors, leaves with shape, stack axes, arithmetic and pieces.
OrderedJson to_json(const Plan& plan, bool with_links);
OrderedJson to_json(const Account& account);

}  // namespace maxport::plan
