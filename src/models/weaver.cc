// Weaver: Qwen3-VL's decoder and vision tower under names of its own, without any prefix.
#include "models/families.h"
#include "models/qwen3_layers.h"
#include "models/qwen3_vision.h"

namespace maxport::models {

Result<ParameterMap> weaver(const ModelContext& context) {
  ParameterMap map;
  MAXPORT_RETURN_IF_ERROR(add_qwen3_decoder(context, map, "Weaver",
                                            {.text = "",
                                             .query = "to_q",
                                             .key = "to_k",
                                             .value = "to_v",
                                             .out = "to_out",
                                             .query_norm = "norm_q",
                                             .key_norm = "norm_k"}));
  if (context.layout.use_multimodal) {
    MAXPORT_RETURN_IF_ERROR(
        add_qwen3_vision(context, map, "vision_config",
                         {.encoder = "Qwen3VLVisionEncoder_0", .projector = "Qwen3VLVisionProjector_0", .tower = ""}));
  } else {
    for (const char* part : {"patch_embed.*", "pos_embed.*", "blocks.*", "deepstack_merger_list.*", "merger.*"})
      map.ignore(part, "vision; use_multimodal is false");
  }
  return map;
}

}  // namespace maxport::models
