// MaxText's RoutedMoE (layers/moe.py of MaxText 0.2.5): a gate and the experts' kernels, stacked over the experts.
#pragma once

#include <string>

#include "forward/experts.h"
#include "forward/maxtext/decoder.h"

namespace maxport::forward {

class MaxtextRoutedDecoder : public MaxtextDecoder {
 public:
  using MaxtextDecoder::MaxtextDecoder;
  Result<> prepare() override;

 protected:
  /// The gate's logits of the block `name`, with its bias where routed_bias says that it is a parameter like others.
  Result<Matrix> gate(const LayerPlace& place, const std::string& name, const Matrix& h, bool bias) const;
  /// The mixture of the block's experts. One expert is read at a time.
  Result<Matrix> experts(const LayerPlace& place, const std::string& name, const Matrix& h,
                         const Choices& choices) const;
  /// act(wi_0) * wi_1.
  virtual Matrix activated(Matrix gate, const Matrix& up) const;

  int64_t count_ = 0;   ///< experts of a layer
  int64_t chosen_ = 0;  ///< of them for each token
  bool bias_experts_ = false, routed_bias_ = false;
  double activation_limit_ = 0;

 private:
  Result<Tensor> expert_parameter(const LayerPlace& place, const std::string& name, int64_t expert) const;
  Result<Matrix> expert_product(const LayerPlace& place, const std::string& name, int64_t expert,
                                const Matrix& rows) const;
};

}  // namespace maxport::forward
