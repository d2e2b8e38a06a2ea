// Qwen3-VL, dense or with experts: the Qwen3 decoder below a vision tower with deepstack mergers.
#include "models/families.h"
#include "models/qwen3_layers.h"
#include "models/qwen3_vision.h"

namespace maxport::models {

Result<ParameterMap> qwen3_vl(const ModelContext& context) {
  ParameterMap map;
  MAXPORT_RETURN_IF_ERROR(add_qwen3_decoder(context, map, "Qwen3-VL",
                                            {.text = "model.language_model.", .experts = ExpertTensors::kTransposed}));
  if (context.layout.use_multimodal)
    MAXPORT_RETURN_IF_ERROR(add_qwen3_vision(
        context, map, "vision_config",
        {.encoder = "Qwen3VLVisionEncoder_0", .projector = "Qwen3VLVisionProjector_0", .tower = "model.visual."}));
  else
    map.ignore("model.visual.*", "vision; use_multimodal is false");
  return map;
}

}  // namespace maxport::models
