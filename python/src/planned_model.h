// A Hugging Face model as the MaxText parameters that it means, without converting it: each leaf is made when it is read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint.h"

namespace maxport::python {

class PlannedModel : public Checkpoint {
 public:
  /// `words` are the arguments of `maxport to_maxtext`: MaxText settings, --hf_model_path, --save_dtype and so on. A
  /// plan that does not account for every tensor is an error that names them.
  static Result<std::shared_ptr<PlannedModel>> open(Storage& storage, const std::vector<std::string>& words);

  std::string family;
  std::string account = "null";  ///< JSON: what is used, ignored and filled
  std::string plan = "null";     ///< JSON: tensors, leaves and their arithmetic
};

}  // namespace maxport::python
