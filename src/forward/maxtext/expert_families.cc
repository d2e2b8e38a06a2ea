// Decoder blocks of MaxText with routed experts beside a common attention: models/mixtral.py, qwen3.py (the MoE layer),
// gpt_oss.py.
#include <algorithm>
#include <cmath>

#include "forward/maxtext/families.h"
#include "forward/maxtext/routed_experts.h"

namespace maxport::forward {
namespace {

/// The gate's largest logits through a softmax; traits.mlp names the block.
class TopOfExpertsDecoder : public MaxtextRoutedDecoder {
 public:
  using MaxtextRoutedDecoder::MaxtextRoutedDecoder;

 protected:
  Result<Matrix> feed_forward(int64_t index, Matrix h) override {
    const LayerPlace here = place(index);
    const std::string name(traits_.mlp);
    MAXPORT_ASSIGN_OR_RETURN(const Matrix logits, gate(here, name, h, routed_bias_));
    return experts(here, name, h, top_then_softmax(logits, chosen_));
  }
};

class GptOssDecoder : public TopOfExpertsDecoder {
 public:
  using TopOfExpertsDecoder::TopOfExpertsDecoder;

 protected:
  /// x act(1.702 x), which is a gate of its own, times the other half plus one; both are limited first.
  Matrix activated(Matrix gate, const Matrix& up) const override {
    const auto limit = static_cast<float>(activation_limit_);
    for (size_t i = 0; i < gate.data.size(); ++i) {
      const float x = std::min(gate.data[i], limit);
      gate.data[i] = x * activate(activation_, 1.702f * x) * (std::clamp(up.data[i], -limit, limit) + 1);
    }
    return gate;
  }
};

Result<double> inverse_root_of_head(const maxtext::Settings& settings) {
  MAXPORT_ASSIGN_OR_RETURN(const double head_dim, settings.number("head_dim"));
  return 1 / std::sqrt(head_dim);
}

bool every_other(int64_t index) { return index % 2 == 0; }

}  // namespace

Result<std::unique_ptr<Decoder>> maxtext_mixtral(MaxtextModel model) {
  MaxtextTraits traits;
  traits.mlp = "MoeBlock_0";
  return make_maxtext<TopOfExpertsDecoder>(std::move(model), traits);
}

Result<std::unique_ptr<Decoder>> maxtext_qwen3_moe(MaxtextModel model) {
  MaxtextTraits traits;
  traits.mlp = "moe_block";
  MAXPORT_ASSIGN_OR_RETURN(traits.query_scale, inverse_root_of_head(*model.settings));
  MAXPORT_ASSIGN_OR_RETURN(traits.query_norm, model.settings->boolean("use_qk_norm"));
  return make_maxtext<TopOfExpertsDecoder>(std::move(model), traits);
}

Result<std::unique_ptr<Decoder>> maxtext_gpt_oss(MaxtextModel model) {
  MaxtextTraits traits;
  traits.attention = "GptOssAttention";
  traits.mlp = "GptOssMlp";
  MAXPORT_ASSIGN_OR_RETURN(traits.query_scale, inverse_root_of_head(*model.settings));
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, model.settings->boolean("attention_bias"));
  traits.bias_out = traits.bias_qkv;
  traits.local = every_other;
  MAXPORT_ASSIGN_OR_RETURN(traits.block, model.settings->integer("inhomogeneous_layer_cycle_interval"));
  if (traits.block < 1)
    return fail(ErrorKind::kInvalidArgument, "inhomogeneous_layer_cycle_interval must be at least 1");
  return make_maxtext<GptOssDecoder>(std::move(model), traits);
}

}  // namespace maxport::forward
