// Decoders of transformers with routed experts beside a common attention: modeling_mixtral, modeling_qwen3_moe,
// modeling_gpt_oss.
#include <algorithm>
#include <cmath>

#include "forward/huggingface/families.h"
#include "forward/huggingface/routed_experts.h"
#include "forward/matmul.h"

namespace maxport::forward {
namespace {

class MixtralDecoder : public RoutedDecoder {
 public:
  using RoutedDecoder::RoutedDecoder;

 protected:
  Result<Matrix> feed_forward(int64_t index, Matrix h) override {
    const std::string prefix = layer_name(index, "block_sparse_moe.");
    MAXPORT_ASSIGN_OR_RETURN(Matrix logits, gate(prefix + "gate", h));
    return experts(prefix, {"w1", "w3", "w2"}, h, softmax_then_top(std::move(logits), chosen_, true));
  }
};

class Qwen3MoeDecoder : public RoutedDecoder {
 public:
  using RoutedDecoder::RoutedDecoder;

  Result<> prepare(std::vector<std::string> layer_types) override {
    MAXPORT_RETURN_IF_ERROR(RoutedDecoder::prepare(std::move(layer_types)));
    MAXPORT_ASSIGN_OR_RETURN(normalize_, config_.boolean_or("norm_topk_prob", false));
    MAXPORT_ASSIGN_OR_RETURN(period_, config_.integer_or("decoder_sparse_step", 1));
    if (config_.has("mlp_only_layers")) {
      MAXPORT_ASSIGN_OR_RETURN(dense_layers_, config_.integers("mlp_only_layers"));
    }
    if (period_ < 1)
      return fail(ErrorKind::kInvalidArgument, "decoder_sparse_step is {}, at least 1 is needed", period_);
    return {};
  }

 protected:
  Result<Matrix> feed_forward(int64_t index, Matrix h) override {
    const std::string prefix = layer_name(index, "mlp.");
    if ((index + 1) % period_ != 0 || std::ranges::find(dense_layers_, index) != dense_layers_.end())
      return gated_mlp(prefix, h);
    MAXPORT_ASSIGN_OR_RETURN(Matrix logits, gate(prefix + "gate", h));
    return experts(prefix, {}, h, softmax_then_top(std::move(logits), chosen_, normalize_));
  }

 private:
  bool normalize_ = false;
  int64_t period_ = 1;
  std::vector<int64_t> dense_layers_;
};

/// All experts of a layer in one tensor each, stored [expert, inputs, outputs]; gate and up alternate.
class GptOssDecoder : public RoutedDecoder {
 public:
  using RoutedDecoder::RoutedDecoder;

  Result<> prepare(std::vector<std::string> layer_types) override {
    MAXPORT_RETURN_IF_ERROR(RoutedDecoder::prepare(std::move(layer_types)));
    MAXPORT_ASSIGN_OR_RETURN(const double alpha, config_.number_or("swiglu_alpha", 1.702));
    MAXPORT_ASSIGN_OR_RETURN(const double limit, config_.number_or("swiglu_limit", 7));
    alpha_ = static_cast<float>(alpha);
    limit_ = static_cast<float>(limit);
    return {};
  }

 protected:
  Result<Matrix> feed_forward(int64_t index, Matrix h) override {
    MAXPORT_ASSIGN_OR_RETURN(const Matrix logits, gate(layer_name(index, "mlp.router"), h, true));
    const std::string prefix = layer_name(index, "mlp.experts.");
    return mix_experts(h, top_then_softmax(logits, chosen_), count_,
                       [&](int64_t e, const Matrix& rows) -> Result<Matrix> {
                         MAXPORT_ASSIGN_OR_RETURN(const Matrix both, part(prefix + "gate_up_proj", e, rows));
                         return part(prefix + "down_proj", e, activated(both));
                       });
  }

 private:
  Result<Matrix> part(const std::string& name, int64_t e, const Matrix& rows) const {
    MAXPORT_ASSIGN_OR_RETURN(const Tensor kernel, weights_.slice(name, 0, e));
    MAXPORT_RETURN_IF_ERROR(check_shape(name, kernel.shape, {rows.cols, -1}));
    Matrix out(rows.rows, kernel.shape[1]);
    multiply(view(out), view(rows), {kernel.data.data(), rows.cols, out.cols, out.cols});
    MAXPORT_ASSIGN_OR_RETURN(const Tensor bias, weights_.slice(name + "_bias", 0, e));
    MAXPORT_RETURN_IF_ERROR(check_shape(name + "_bias", bias.shape, {out.cols}));
    add_bias(out, bias.data);
    return out;
  }

  Matrix activated(const Matrix& both) const {
    Matrix out(both.rows, both.cols / 2);
    for (int64_t r = 0; r < out.rows; ++r) {
      for (int64_t c = 0; c < out.cols; ++c) {
        const float gate = std::min(both.row(r)[2 * c], limit_);
        const float up = std::clamp(both.row(r)[2 * c + 1], -limit_, limit_);
        out.row(r)[c] = (up + 1) * gate * sigmoid(gate * alpha_);
      }
    }
    return out;
  }

  float alpha_ = 0, limit_ = 0;
};

Result<std::vector<std::string>> window_everywhere(const huggingface::ConfigRoles& config) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t layers, config.integer("num_hidden_layers"));
  return std::vector<std::string>(static_cast<size_t>(layers), "sliding_attention");
}

}  // namespace

Result<std::unique_ptr<Decoder>> huggingface_mixtral(HuggingfaceModel model) {
  std::vector<std::string> types;
  if (model.config->has("sliding_window")) {
    MAXPORT_ASSIGN_OR_RETURN(types, window_everywhere(*model.config));
  }
  return make_huggingface<MixtralDecoder>(std::move(model), {}, std::move(types));
}

Result<std::unique_ptr<Decoder>> huggingface_qwen3_moe(HuggingfaceModel model) {
  HuggingfaceTraits traits;
  traits.query_norm = QueryNorm::kHead;
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, model.config->boolean_or("attention_bias", false));
  traits.bias_out = traits.bias_qkv;
  std::vector<std::string> types;
  MAXPORT_ASSIGN_OR_RETURN(const bool slides, model.config->boolean_or("use_sliding_window", false));
  if (slides && model.config->has("sliding_window")) {
    MAXPORT_ASSIGN_OR_RETURN(types, window_everywhere(*model.config));
  }
  return make_huggingface<Qwen3MoeDecoder>(std::move(model), traits, std::move(types));
}

Result<std::unique_ptr<Decoder>> huggingface_gpt_oss(HuggingfaceModel model) {
  HuggingfaceTraits traits;
  traits.sinks = true;
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, model.config->boolean_or("attention_bias", true));
  traits.bias_out = traits.bias_qkv;
  MAXPORT_ASSIGN_OR_RETURN(auto types, layer_types_or_period(*model.config, 2));
  return make_huggingface<GptOssDecoder>(std::move(model), traits, std::move(types));
}

}  // namespace maxport::forward
