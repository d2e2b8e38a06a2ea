// The table of model families.
#include "models/families.h"

#include <algorithm>
#include <array>

#include "models/spelling.h"

namespace maxport::models {
namespace {

using Names = std::array<std::string_view, 1>;

constexpr Names kLlama{"llama"};
constexpr Names kMistral{"mistral"};
constexpr Names kMixtral{"mixtral"};
constexpr Names kQwen25{"qwen2"};
constexpr Names kQwen3{"qwen3"};
constexpr Names kQwen3Moe{"qwen3_moe"};
constexpr Names kGptOss{"gpt_oss"};
constexpr Names kOlmo3{"olmo3"};
constexpr Names kGemma2{"gemma2"};
constexpr std::array<std::string_view, 2> kGemma3{"gemma3", "gemma3_text"};
constexpr Names kDeepSeek2{"deepseek_v2"};
constexpr Names kDeepSeek3{"deepseek_v3"};
constexpr Names kDeepSeek32{"deepseek_v32"};
constexpr Names kDeepSeek4{"deepseek_v4"};
constexpr Names kGemma4{"gemma4"};
constexpr Names kQwen3Next{"qwen3_next"};
constexpr Names kQwen35{"qwen3_5_moe"};
constexpr std::array<std::string_view, 2> kQwen3Vl{"qwen3_vl", "qwen3_vl_moe"};
constexpr Names kQwen3Omni{"qwen3_omni_moe"};
constexpr Names kWeaver{"weaver_omni"};

constexpr std::string_view kDeepstack = "deepstack adds pictures to single layers, so they are not alike";

constexpr std::array kFamilies{
    Family{"llama", "Llama 3.1", kLlama, true, {}, llama},
    Family{"mistral", "Mistral", kMistral, true, {}, mistral},
    Family{"mixtral", "Mixtral", kMixtral, true, {}, mixtral},
    Family{"qwen2.5", "Qwen2.5", kQwen25, true, {}, qwen25},
    Family{"qwen3", "Qwen3", kQwen3, true, {}, qwen3},
    Family{"qwen3-moe", "Qwen3 MoE", kQwen3Moe, true, {}, qwen3},
    Family{"gpt-oss", "gpt-oss", kGptOss, true, {}, gpt_oss},
    Family{"olmo3", "Olmo 3", kOlmo3, true, {}, olmo3},
    Family{"gemma2", "Gemma 2", kGemma2, true, {}, gemma2},
    Family{"gemma3", "Gemma 3", kGemma3, true, {}, gemma3},
    Family{"deepseek2", "DeepSeek V2", kDeepSeek2, true, {}, deepseek2},
    Family{"deepseek3", "DeepSeek V3", kDeepSeek3, true, {}, deepseek3, true},
    Family{"deepseek3.2", "DeepSeek V3.2", kDeepSeek32, true, {}, deepseek32, true},
    Family{"deepseek4", "DeepSeek V4", kDeepSeek4, true, {}, deepseek4},
    Family{"qwen3-next", "Qwen3-Next", kQwen3Next, true, {}, qwen3_next},
    Family{"qwen3.5", "Qwen3.5", kQwen35, true, {}, qwen3_5, false, nullptr, /*keeps_float8=*/true},
    Family{"qwen3-vl", "Qwen3-VL", kQwen3Vl, false, kDeepstack, qwen3_vl},
    Family{"qwen3-omni", "Qwen3-Omni", kQwen3Omni, false, kDeepstack, qwen3_omni},
    Family{"weaver", "Weaver", kWeaver, false, kDeepstack, weaver},
    Family{"gemma4", "Gemma 4", kGemma4, true, {}, gemma4, false, gemma4_is_large},
    Family{"gemma4-small", "Gemma 4 E2B, E4B", kGemma4, false, "layers share keys and values, so they are not alike",
           gemma4_small, false, gemma4_is_small},
};

}  // namespace

std::span<const Family> all_families() { return kFamilies; }

const Family* find_family(std::string_view name) {
  for (const Family& family : kFamilies)
    if (family.name == name) return &family;
  return nullptr;
}

Result<const Family*> family_of(const huggingface::ConfigRoles& config) {
  for (const std::string& type : {config.model_type(), config.section_model_type()})
    for (const Family& family : kFamilies)
      if (std::ranges::find(family.model_types, type) != family.model_types.end() &&
          (family.fits == nullptr || family.fits(config)))
        return &family;
  return fail(ErrorKind::kUnsupported, "model_type \"{}\" is of no family that can be converted",
              printable(config.model_type()));
}

Result<ParameterMap> parameter_map(const Family& family, const ModelContext& context) {
  if (context.layout.scan_layers && !family.scanned)
    return fail(ErrorKind::kUnsupported, "{} with scan_layers=true: {}; convert with scan_layers=false", family.title,
                family.why_not_scanned);
  if (context.layout.mtp_num_layers > 0 && !family.predicts_tokens_ahead)
    return fail(ErrorKind::kUnsupported,
                "{} with mtp_num_layers={}: where its prediction layers go is not known; "
                "convert with mtp_num_layers=0",
                family.title, context.layout.mtp_num_layers);
  if (context.source == nullptr) return family.parameter_map(context);
  MAXPORT_ASSIGN_OR_RETURN(const Spelling spelling, find_spelling(family, context));
  const RespeltNames names(*context.source, spelling);
  MAXPORT_ASSIGN_OR_RETURN(ParameterMap map, family.parameter_map({context.config, context.layout, &names}));
  respell(spelling, map);
  return map;
}

}  // namespace maxport::models
