// A Hugging Face model directory together with the plan that turns it into MaxText parameters.
//
// Opening reads configuration and file headers only. What the plan says about them is in account(); nothing here fails
// because of a bad account, so that a dry run can print it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/tensor_reader.h"
#include "huggingface/model_directory.h"
#include "maxtext/catalog.h"
#include "maxtext/settings.h"
#include "models/family.h"
#include "plan/check.h"

namespace maxport::convert {

struct ModelRequest {
  std::string folder;
  bool ignore_index = false;
  models::HeadPolicy head = models::HeadPolicy::kAuto;
  bool drop_unused = false;  ///< tensors that have no place are left out instead of being a fault
};

/// Which model a configuration and the MaxText settings mean.
struct ModelIdentity {
  const models::Family* family = nullptr;
  const maxtext::CatalogEntry* entry = nullptr;  ///< null for a size without a name
  models::MaxTextLayout layout;
  std::vector<maxtext::ConfigMismatch> mismatches;  ///< what config.json says otherwise than the model's name
};

/// Chooses family and layout: `model_name` if given (checked against the configuration unless override_model_config),
/// else by the configuration.
Result<ModelIdentity> identify(const huggingface::ConfigRoles& config, const maxtext::Settings& settings);

class ModelSource : public engine::TensorReader, public models::SourceNames {
 public:
  static Result<std::unique_ptr<ModelSource>> open(Storage& storage, const ModelRequest& request,
                                                   const maxtext::Settings& settings);

  const huggingface::ModelDirectory& directory() const { return *directory_; }
  const ModelIdentity& identity() const { return identity_; }
  const models::ParameterMap& map() const { return map_; }
  const plan::Plan& plan() const { return plan_; }
  const plan::Account& account() const { return account_; }

  /// Compares what must be equal (a tied head that is stored all the same). kInvalidArgument tells where they differ.
  Result<> check_equal_tensors() const;

  // engine::TensorReader
  DType dtype(uint32_t tensor) const override { return entries_[tensor].info->dtype; }
  Result<> read(uint32_t tensor, uint64_t byte_offset, MutableByteSpan out) const override;
  // models::SourceNames
  bool contains(std::string_view name) const override;
  std::optional<Shape> shape(std::string_view name) const override;
  bool contains_prefix(std::string_view prefix) const override;

 private:
  ModelSource() = default;
  Result<> make_plan();
  void drop_unused();
  Result<> connect();

  std::unique_ptr<huggingface::ModelDirectory> directory_;
  ModelIdentity identity_;
  models::ParameterMap map_;
  plan::Plan plan_;
  plan::Account account_;
  std::vector<huggingface::TensorEntry> entries_;  // by plan tensor; no info where it is missing
};

}  // namespace maxport::convert
