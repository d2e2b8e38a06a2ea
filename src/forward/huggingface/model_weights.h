// The tensors of a Hugging Face model folder as weights.
#pragma once

#include <memory>

#include "forward/weights.h"
#include "huggingface/model_directory.h"

namespace maxport::forward {

class ModelWeights : public Weights {
 public:
  explicit ModelWeights(std::shared_ptr<const huggingface::ModelDirectory> directory)
      : directory_(std::move(directory)) {}

  bool contains(std::string_view name) const override { return directory_->tensors().contains(name); }
  Result<Shape> shape(std::string_view name) const override;
  Result<> read(std::string_view name, const Box& box, std::span<float> out) const override;
  Result<int64_t> row_step(std::string_view) const override { return 1; }

 private:
  std::shared_ptr<const huggingface::ModelDirectory> directory_;
};

}  // namespace maxport::forward
