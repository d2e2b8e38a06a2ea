// A MaxText checkpoint together with the plan that turns its parameters into Hugging Face tensors.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "huggingface/config_roles.h"
#include "maxtext/catalog.h"
#include "maxtext/settings.h"
#include "maxtext/tree_layout.h"
#include "models/family.h"
#include "orbax/checkpoint.h"
#include "plan/plan.h"

namespace maxport::convert {

struct CheckpointRequest {
  std::string path;                         ///< a step, its items, or a folder of steps
  std::optional<std::string> hf_folder = {};  ///< whose config.json describes the model
  bool ignore_model_name = false;           ///< the configuration counts where model_name says otherwise
  /// A kRecordFile of another checkpoint of the model, whose configuration counts when nothing nearer says one.
  std::optional<std::string> other_record = {};
  /// Parameters that are missing, misshapen or left over are kept in mismatches() instead of being an error.
  bool keep_mismatches = false;
};

/// How a checkpoint differs from what its configuration means; names are canonical.
struct LeafMismatches {
  struct Misshapen {
    std::string name;
    Shape stored, planned;
  };
  struct Missing {
    std::string name;
    Shape planned;
  };
  std::vector<Missing> missing;
  std::vector<Misshapen> misshapen;
  std::vector<std::string> left_over;  ///< that the plan has no place for
};

class CheckpointSource {
 public:
  /// Finds the model's configuration (the given folder's config.json, else what the conversion recorded, else the
  /// catalog's for model_name), the layout of the tree, and which array is which parameter. Every parameter of the plan
  /// must be there with the shape that the configuration means, and every one that is there must be of the plan.
  static Result<std::unique_ptr<CheckpointSource>> open(Storage& storage, const CheckpointRequest& request,
                                                        const maxtext::Settings& settings);

  const orbax::Checkpoint& checkpoint() const { return *checkpoint_; }
  const huggingface::ConfigRoles& config() const { return *config_; }
  /// "config.json of ...", for messages.
  const std::string& config_source() const { return config_source_; }
  const models::Family& family() const { return *family_; }
  const models::MaxTextLayout& layout() const { return layout_; }
  const models::ParameterMap& map() const { return map_; }
  const plan::Plan& plan() const { return plan_; }
  /// One a leaf of the plan; null for constants.
  const std::vector<const zarr::ArrayReader*>& arrays() const { return arrays_; }
  /// One a leaf of the plan, also for constants; null where there is none, or one of another shape.
  const std::vector<const orbax::CheckpointLeaf*>& stored_leaves() const { return stored_leaves_; }
  /// Empty unless the request keeps them.
  const LeafMismatches& mismatches() const { return mismatches_; }
  /// What was left out and how the tree was read, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  CheckpointSource() = default;
  Result<> find_config(Storage& storage, const CheckpointRequest& request, const maxtext::Settings& settings);
  Result<> read_tree();
  Result<> read_layout(const maxtext::Settings& settings);
  Result<> read_scan(const maxtext::Settings& settings);
  Result<> match_leaves();
  void match_leaf(const plan::Leaf& leaf, const std::string& name);
  void find_left_over(const std::set<std::string>& used);
  Result<> refuse_mismatches() const;
  const orbax::CheckpointLeaf* find(std::string_view canonical) const;
  bool any_begins(std::string_view canonical_prefix) const;

  std::unique_ptr<orbax::Checkpoint> checkpoint_;
  std::optional<huggingface::ConfigRoles> config_;
  std::string config_source_;
  const models::Family* family_ = nullptr;
  models::MaxTextLayout layout_;
  models::ParameterMap map_;
  plan::Plan plan_;
  maxtext::CanonicalTree tree_;
  std::vector<const orbax::CheckpointLeaf*> stored_;  // by canonical tree index
  std::vector<const zarr::ArrayReader*> arrays_;
  std::vector<const orbax::CheckpointLeaf*> stored_leaves_;
  LeafMismatches mismatches_;
  std::vector<std::string> notes_;
};

}  // namespace maxport::convert
