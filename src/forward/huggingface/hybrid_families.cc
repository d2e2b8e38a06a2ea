// Decoders of transformers whose layers take turns between linear and full attention: modeling_qwen3_next, and the text
// part of modeling_qwen3_5_moe.
#include <algorithm>
#include <array>

#include "forward/delta_net.h"
#include "forward/huggingface/families.h"
#include "forward/huggingface/routed_experts.h"

namespace maxport::forward {
namespace {

class HybridDecoder : public RoutedDecoder {
 public:
  using RoutedDecoder::RoutedDecoder;

  Result<> prepare(std::vector<std::string> layer_types) override {
    MAXPORT_RETURN_IF_ERROR(RoutedDecoder::prepare(std::move(layer_types)));
    MAXPORT_ASSIGN_OR_RETURN(shape_.key_heads, config_.integer("linear_num_key_heads"));
    MAXPORT_ASSIGN_OR_RETURN(shape_.value_heads, config_.integer("linear_num_value_heads"));
    MAXPORT_ASSIGN_OR_RETURN(shape_.key_dim, config_.integer("linear_key_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(shape_.value_dim, config_.integer("linear_value_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(shape_.taps, config_.integer("linear_conv_kernel_dim"));
    MAXPORT_ASSIGN_OR_RETURN(normalize_, config_.boolean_or("norm_topk_prob", true));
    if (shape_.key_dim < 1 || shape_.value_dim < 1 || shape_.taps < 1 || shape_.value_heads < 1)
      return fail(ErrorKind::kInvalidArgument, "linear attention needs heads, keys, values and taps of at least 1");
    if (shape_.key_heads < 1 || shape_.value_heads % shape_.key_heads != 0)
      return fail(ErrorKind::kInvalidArgument, "{} value heads cannot share {} key heads", shape_.value_heads,
                  shape_.key_heads);
    return {};
  }

 protected:
  Result<Matrix> attention(int64_t index, const Batch& batch, Matrix h) override {
    return layer_type(index) == "linear_attention" ? linear_attention(index, batch, h)
                                                   : gated_attention(index, batch, h);
  }

  Result<Matrix> feed_forward(int64_t index, Matrix h) override {
    const std::string prefix = layer_name(index, "mlp.");
    // Some layers may be dense (mlp_only_layers, decoder_sparse_step); those have no router.
    if (!weights_.contains(prefix + "gate.weight")) return gated_mlp(prefix, h);
    MAXPORT_ASSIGN_OR_RETURN(Matrix logits, gate(prefix + "gate", h));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out,
                             experts(prefix, {}, h, softmax_then_top(std::move(logits), chosen_, normalize_)));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix share, linear(prefix + "shared_expert_gate", h));
    MAXPORT_ASSIGN_OR_RETURN(Matrix shared, gated_mlp(prefix + "shared_expert.", h));
    for (int64_t r = 0; r < shared.rows; ++r)
      for (int64_t c = 0; c < shared.cols; ++c) out.row(r)[c] += sigmoid(share.row(r)[0]) * shared.row(r)[c];
    return out;
  }

 private:
  Result<Matrix> gated_attention(int64_t index, const Batch& batch, const Matrix& h) {
    const std::string prefix = layer_name(index, "self_attn.");
    MAXPORT_ASSIGN_OR_RETURN(const Matrix both, linear(prefix + "q_proj", h, traits_.bias_qkv));
    MAXPORT_ASSIGN_OR_RETURN(Matrix k, linear(prefix + "k_proj", h, traits_.bias_qkv));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix v, linear(prefix + "v_proj", h, traits_.bias_qkv));
    MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "q_proj, k_proj, v_proj", {both.cols, k.cols, v.cols},
                                        {2 * heads_ * head_dim_, kv_heads_ * head_dim_, kv_heads_ * head_dim_}));
    // Each head's query is followed by its gate.
    std::vector<Matrix> parts = split_groups(both, heads_, std::array{head_dim_, head_dim_});
    Matrix& q = parts[0];
    MAXPORT_RETURN_IF_ERROR(norm(prefix + "q_norm", q));
    MAXPORT_RETURN_IF_ERROR(norm(prefix + "k_norm", k));
    apply_rotary(q, head_dim_, batch.positions, rotary(index));
    apply_rotary(k, head_dim_, batch.positions, rotary(index));
    Matrix out = attend(q, k, v, batch, {heads_, kv_heads_, head_dim_, head_dim_, score_scale_});
    for (size_t i = 0; i < out.data.size(); ++i) out.data[i] *= sigmoid(parts[1].data[i]);
    return linear(prefix + "o_proj", out, traits_.bias_out);
  }

  Result<DeltaNetInputs> project(const std::string& prefix, const Matrix& h) {
    DeltaNetInputs in;
    if (weights_.contains(prefix + "in_proj_qkvz.weight")) {  // Qwen3-Next: everything of a key head together
      const int64_t group = shape_.value_heads / shape_.key_heads;
      MAXPORT_ASSIGN_OR_RETURN(const Matrix qkvz, linear(prefix + "in_proj_qkvz", h));
      MAXPORT_ASSIGN_OR_RETURN(const Matrix ba, linear(prefix + "in_proj_ba", h));
      MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "in_proj_qkvz", {qkvz.cols, ba.cols},
                                          {shape_.channels() + shape_.values(), 2 * shape_.value_heads}));
      const int64_t values = group * shape_.value_dim;
      auto parts = split_groups(qkvz, shape_.key_heads, std::array{shape_.key_dim, shape_.key_dim, values, values});
      auto rates = split_groups(ba, shape_.key_heads, std::array{group, group});
      in.qkv = Matrix(h.rows, shape_.channels());
      for (int64_t r = 0; r < h.rows; ++r) {
        float* target = in.qkv.row(r);
        for (size_t part = 0; part < 3; ++part) target = std::copy_n(parts[part].row(r), parts[part].cols, target);
      }
      in.gate = std::move(parts[3]);
      in.beta = std::move(rates[0]);
      in.time = std::move(rates[1]);
      return in;
    }
    MAXPORT_ASSIGN_OR_RETURN(in.qkv, linear(prefix + "in_proj_qkv", h));
    MAXPORT_ASSIGN_OR_RETURN(in.gate, linear(prefix + "in_proj_z", h));
    MAXPORT_ASSIGN_OR_RETURN(in.beta, linear(prefix + "in_proj_b", h));
    MAXPORT_ASSIGN_OR_RETURN(in.time, linear(prefix + "in_proj_a", h));
    MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "in_proj_qkv, _z, _b, _a",
                                        {in.qkv.cols, in.gate.cols, in.beta.cols, in.time.cols},
                                        {shape_.channels(), shape_.values(), shape_.value_heads, shape_.value_heads}));
    return in;
  }

  Result<Matrix> linear_attention(int64_t index, const Batch& batch, const Matrix& h) {
    const std::string prefix = layer_name(index, "linear_attn.");
    MAXPORT_ASSIGN_OR_RETURN(DeltaNetInputs inputs, project(prefix, h));
    DeltaNetWeights weights;
    weights.epsilon = epsilon_;
    MAXPORT_ASSIGN_OR_RETURN(Tensor convolution, weights_.tensor(prefix + "conv1d.weight"));
    MAXPORT_RETURN_IF_ERROR(
        check_shape(prefix + "conv1d.weight", convolution.shape, {shape_.channels(), 1, shape_.taps}));
    weights.convolution = std::move(convolution.data);
    MAXPORT_ASSIGN_OR_RETURN(weights.decay_log, vector(prefix + "A_log"));
    MAXPORT_ASSIGN_OR_RETURN(weights.time_bias, vector(prefix + "dt_bias"));
    MAXPORT_ASSIGN_OR_RETURN(weights.norm, vector(prefix + "norm.weight"));
    const auto size = [](const std::vector<float>& v) { return static_cast<int64_t>(v.size()); };
    MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "A_log, dt_bias, norm.weight",
                                        {size(weights.decay_log), size(weights.time_bias), size(weights.norm)},
                                        {shape_.value_heads, shape_.value_heads, shape_.value_dim}));
    return linear(prefix + "out_proj", gated_delta_net(std::move(inputs), weights, shape_, batch));
  }

  DeltaNetShape shape_;
  bool normalize_ = true;
};

}  // namespace

Result<std::unique_ptr<Decoder>> huggingface_qwen3_hybrid(HuggingfaceModel model) {
  const huggingface::ConfigRoles& config = *model.config;
  HuggingfaceTraits traits;
  traits.norm_offset = 1;
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, config.boolean_or("attention_bias", false));
  traits.bias_out = traits.bias_qkv;
  MAXPORT_ASSIGN_OR_RETURN(std::vector<std::string> types, config.layer_types());
  if (types.empty()) {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t layers, config.integer("num_hidden_layers"));
    MAXPORT_ASSIGN_OR_RETURN(const int64_t period, config.integer_or("full_attention_interval", 4));
    for (int64_t i = 1; i <= layers; ++i)
      types.push_back(i % std::max<int64_t>(period, 1) == 0 ? "full_attention" : "linear_attention");
  }
  return make_huggingface<HybridDecoder>(std::move(model), traits, std::move(types));
}

}  // namespace maxport::forward
