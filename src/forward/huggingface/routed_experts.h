// What decoders of transformers with one set of tensors an expert have in common.
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
  /// The mixture of the networks at `prefix` + "experts.N.".
  Result<Matrix> experts(const std::string& prefix, const ExpertNames& names, const Matrix& h,
                         const Choices& choices) const;

  int64_t count_ = 0;   ///< experts of a layer
  int64_t chosen_ = 0;  ///< of them for each token
};

}  // namespace maxport::forward
