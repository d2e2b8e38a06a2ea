// What decoders of transformers with routed experts have in common. Files hold an expert in either of two ways:
//
//   PREFIX experts.E.gate_proj.weight, up_proj.weight [inner, width], down_proj.weight [width, inner]
//   PREFIX experts.gate_up_proj [experts, 2 inner, width], PREFIX experts.down_proj [experts, width, inner]
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "forward/experts.h"
#include "forward/huggingface/decoder.h"

namespace maxport::forward {

struct ExpertNames {
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
};

class RoutedDecoder : public HuggingfaceDecoder {
 public:
  using HuggingfaceDecoder::HuggingfaceDecoder;
  Result<> prepare(std::vector<std::string> layer_types) override;

 protected:
  /// The router's logits, [tokens, experts].
  Result<Matrix> gate(const std::string& name, const Matrix& h, bool bias = false) const;
  /// The mixture of the networks at `prefix` + "experts.". `names` are for files with tensors of their own an expert.
  Result<Matrix> experts(const std::string& prefix, const ExpertNames& names, const Matrix& h,
                         const Choices& choices) const;

  int64_t count_ = 0;   ///< experts of a layer
  int64_t chosen_ = 0;  ///< of them for each token

 private:
  Result<Matrix> stacked_product(const std::string& name, int64_t expert, const Matrix& rows) const;
  Result<Matrix> stacked_experts(const std::string& prefix, const Matrix& h, const Choices& choices) const;
};

}  // namespace maxport::forward
