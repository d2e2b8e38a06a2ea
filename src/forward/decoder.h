// A model's forward pass, cut into the steps that every decoder has, so that weights are read layer by layer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "forward/batch.h"
#include "forward/matrix.h"

namespace maxport::forward {

class Decoder {
 public:
  virtual ~Decoder() = default;

  /// For messages: "Hugging Face llama", "MaxText llama2, scanned".
  virtual std::string description() const = 0;
  virtual int64_t layers() const = 0;
  /// [tokens, width]
  virtual Result<Matrix> embed(const Batch& batch) = 0;
  /// Changes the residual stream `x`, [tokens, width], in place.
  virtual Result<> layer(int64_t index, const Batch& batch, Matrix& x) = 0;
  /// [tokens, vocabulary]
  virtual Result<Matrix> head(Matrix x) = 0;
};

/// Runs all steps. `progress`, if any, is called before each layer and may stop the pass by returning false
/// (kInterrupted).
Result<Matrix> run(Decoder& decoder, const Batch& batch, const std::function<bool(int64_t layer)>& progress = {});

}  // namespace maxport::forward
