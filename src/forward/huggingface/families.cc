#include "forward/huggingface/families.h"

#include <algorithm>
#include <array>

namespace maxport::forward {
namespace {

struct Entry {
  std::string_view model_type;  ///< of the decoder's section
  HuggingfaceFamily build;
};

// Sorted by name.
constexpr std::array kFamilies = {
    Entry{"deepseek_v2", huggingface_deepseek},
    Entry{"deepseek_v3", huggingface_deepseek},
    Entry{"deepseek_v32", huggingface_deepseek},
    Entry{"gemma2", huggingface_gemma2},
    Entry{"gemma3_text", huggingface_gemma3},
    Entry{"gemma4_text", huggingface_gemma4},
    Entry{"gpt_oss", huggingface_gpt_oss},
    Entry{"llama", huggingface_llama},
    Entry{"mistral", huggingface_mistral},
    Entry{"mixtral", huggingface_mixtral},
    Entry{"olmo3", huggingface_olmo3},
    Entry{"qwen2", huggingface_qwen2},
    Entry{"qwen3", huggingface_qwen3},
    Entry{"qwen3_5_moe_text", huggingface_qwen3_hybrid},
    Entry{"qwen3_moe", huggingface_qwen3_moe},
    Entry{"qwen3_next", huggingface_qwen3_hybrid},
    Entry{"qwen3_omni_moe_text", huggingface_qwen3_moe},
    Entry{"qwen3_vl_text", huggingface_qwen3},
};

}  // namespace

std::vector<std::string_view> huggingface_model_types() {
  std::vector<std::string_view> out;
  for (const Entry& entry : kFamilies) out.push_back(entry.model_type);
  return out;
}

Result<std::unique_ptr<Decoder>> open_huggingface(Storage& storage, const std::string& folder, bool like_maxtext) {
  MAXPORT_ASSIGN_OR_RETURN(auto opened, huggingface::ModelDirectory::open(storage, folder));
  std::shared_ptr<const huggingface::ModelDirectory> directory = std::move(opened);
  const huggingface::ConfigRoles& config = directory->roles();
  MAXPORT_ASSIGN_OR_RETURN(const auto quantization, config.quantization());
  if (quantization)
    return fail(ErrorKind::kUnsupported,
                "{}: its weights are quantised ({}); a forward pass needs them in bfloat16 or float32",
                printable(folder), printable(quantization->method));
  const std::string type = config.section_model_type();
  const auto found = std::ranges::find(kFamilies, std::string_view(type), &Entry::model_type);
  if (found == kFamilies.end())
    return fail(ErrorKind::kUnsupported, "{}: no forward pass for model_type \"{}\"; there is one for {}",
                printable(folder), printable(type), fmt::join(huggingface_model_types(), ", "));
  return with_context(found->build({directory, &config, like_maxtext}), "in " + printable(folder));
}

Result<std::vector<std::string>> layer_types_or_period(const huggingface::ConfigRoles& config, int64_t period) {
  MAXPORT_ASSIGN_OR_RETURN(std::vector<std::string> types, config.layer_types());
  if (!types.empty()) return types;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layers, config.integer("num_hidden_layers"));
  for (int64_t i = 1; i <= layers; ++i) types.push_back(i % period == 0 ? "full_attention" : "sliding_attention");
  return types;
}

}  // namespace maxport::forward
