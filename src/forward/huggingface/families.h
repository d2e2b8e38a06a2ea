// Which code runs a Hugging Face model, by its model_type.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "forward/huggingface/decoder.h"

namespace maxport::forward {

/// kUnsupported for a model type without a forward pass here, or with quantised weights. `like_maxtext` rounds a scaled
/// embedding and a tied table as MaxText and its converter do.
Result<std::unique_ptr<Decoder>> open_huggingface(Storage& storage, const std::string& folder,
                                                  bool like_maxtext = false);

/// The model types that open_huggingface takes.
std::vector<std::string_view> huggingface_model_types();

// Families. Each builds a prepared decoder.
using HuggingfaceFamily = Result<std::unique_ptr<Decoder>> (*)(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_llama(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_mistral(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_qwen2(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_qwen3(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_gemma2(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_gemma3(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_gemma4(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_olmo3(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_mixtral(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_qwen3_moe(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_gpt_oss(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_deepseek(HuggingfaceModel model);
Result<std::unique_ptr<Decoder>> huggingface_qwen3_hybrid(HuggingfaceModel model);

/// One entry a layer: the configuration's layer_types, else "sliding_attention" except in every `period`-th layer.
Result<std::vector<std::string>> layer_types_or_period(const huggingface::ConfigRoles& config, int64_t period);

/// Builds a decoder of class D.
template <class D>
Result<std::unique_ptr<Decoder>> make_huggingface(HuggingfaceModel model, HuggingfaceTraits traits,
                                                  std::vector<std::string> layer_types = {}) {
  auto out = std::make_unique<D>(std::move(model), traits);
  MAXPORT_RETURN_IF_ERROR(out->prepare(std::move(layer_types)));
  return out;
}

}  // namespace maxport::forward
