// One function a family; families.cc lists them.
#pragma once

#include "models/family.h"

namespace maxport::models {

Result<ParameterMap> gemma2(const ModelContext& context);
Result<ParameterMap> gemma3(const ModelContext& context);
Result<ParameterMap> gpt_oss(const ModelContext& context);
Result<ParameterMap> mistral(const ModelContext& context);
Result<ParameterMap> mixtral(const ModelContext& context);
Result<ParameterMap> olmo3(const ModelContext& context);
Result<ParameterMap> qwen25(const ModelContext& context);
Result<ParameterMap> qwen3(const ModelContext& context);
Result<ParameterMap> deepseek2(const ModelContext& context);
Result<ParameterMap> deepseek3(const ModelContext& context);
Result<ParameterMap> deepseek32(const ModelContext& context);
Result<ParameterMap> deepseek4(const ModelContext& context);
Result<ParameterMap> gemma4(const ModelContext& context);
Result<ParameterMap> gemma4_small(const ModelContext& context);
Result<ParameterMap> llama(const ModelContext& context);
Result<ParameterMap> qwen3_5(const ModelContext& context);
Result<ParameterMap> qwen3_next(const ModelContext& context);
Result<ParameterMap> qwen3_omni(const ModelContext& context);
Result<ParameterMap> qwen3_vl(const ModelContext& context);
Result<ParameterMap> weaver(const ModelContext& context);

/// Only the small models have embeddings for single layers.
bool gemma4_is_small(const huggingface::ConfigRoles& config);
bool gemma4_is_large(const huggingface::ConfigRoles& config);

}  // namespace maxport::models
