// The text part of Gemma 4 as transformers defines it: modeling_gemma4. Layers of full attention have heads of another
// size; some models add experts beside the feed-forward network, others an embedding a layer, or share keys and values.
#include <cmath>

#include "forward/experts.h"
#include "forward/huggingface/families.h"
#include "forward/huggingface/rotary_settings.h"
#include "forward/matmul.h"

namespace maxport::forward {
namespace {

class Gemma4Decoder : public HuggingfaceDecoder {
 public:
  using HuggingfaceDecoder::HuggingfaceDecoder;

  Result<> prepare(std::vector<std::string> layer_types) override {
    MAXPORT_RETURN_IF_ERROR(HuggingfaceDecoder::prepare(std::move(layer_types)));
    // The size of heads depends on the layer's type, which configurations spell in several ways; the norms have it.
    rotaries_.clear();
    for (int64_t i = 0; i < layers_; ++i) {
      if (rotaries_.contains(layer_type(i))) continue;
      MAXPORT_ASSIGN_OR_RETURN(const int64_t dim, head_dim(i));
      MAXPORT_ASSIGN_OR_RETURN(rotaries_[layer_type(i)], huggingface_rotary(config_, layer_type(i), dim));
    }
    MAXPORT_ASSIGN_OR_RETURN(value_is_key_, config_.boolean_or("attention_k_eq_v", false));
    MAXPORT_ASSIGN_OR_RETURN(has_experts_, config_.boolean_or("enable_moe_block", false));
    if (has_experts_) {
      MAXPORT_ASSIGN_OR_RETURN(experts_, config_.integer("num_experts"));
      MAXPORT_ASSIGN_OR_RETURN(chosen_, config_.integer("num_experts_per_tok"));
      if (chosen_ < 1 || chosen_ > experts_)
        return fail(ErrorKind::kInvalidArgument, "a token cannot choose {} of {} experts", chosen_, experts_);
    }
    MAXPORT_ASSIGN_OR_RETURN(layer_width_, config_.integer_or("hidden_size_per_layer_input", 0));
    MAXPORT_ASSIGN_OR_RETURN(const int64_t shared, config_.integer_or("num_kv_shared_layers", 0));
    first_shared_ = layers_ - shared;
    if (first_shared_ < 1)
      return fail(ErrorKind::kInvalidArgument, "{} of {} layers cannot share keys and values", shared, layers_);
    return {};
  }

  Result<Matrix> embed(const Batch& batch) override {
    MAXPORT_ASSIGN_OR_RETURN(Matrix x, HuggingfaceDecoder::embed(batch));
    if (layer_width_ == 0) return x;
    MAXPORT_ASSIGN_OR_RETURN(layer_inputs_, linear(prefix_ + "per_layer_model_projection", x));
    scale(layer_inputs_, static_cast<float>(1 / std::sqrt(static_cast<double>(width_))));
    MAXPORT_RETURN_IF_ERROR(norm(prefix_ + "per_layer_projection_norm", layer_inputs_));
    const std::string table = prefix_ + "embed_tokens_per_layer.weight";
    MAXPORT_ASSIGN_OR_RETURN(Matrix own, weights_.rows(table, batch.ids));
    MAXPORT_RETURN_IF_ERROR(
        check_shape(table, {own.cols, layer_inputs_.cols}, {layers_ * layer_width_, layers_ * layer_width_}));
    scale(own, static_cast<float>(std::sqrt(static_cast<double>(layer_width_))));
    add(layer_inputs_, own);
    scale(layer_inputs_, static_cast<float>(1 / std::sqrt(2.0)));
    return x;
  }

  Result<> layer(int64_t index, const Batch& batch, Matrix& x) override {
    Matrix h = x;
    MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, "input_layernorm"), h));
    MAXPORT_ASSIGN_OR_RETURN(h, attention(index, batch, std::move(h)));
    MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, "post_attention_layernorm"), h));
    add(x, h);
    h = x;
    MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, "pre_feedforward_layernorm"), h));
    MAXPORT_ASSIGN_OR_RETURN(h, feed_forward(index, std::move(h)));
    if (has_experts_) {
      MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, "post_feedforward_layernorm_1"), h));
      MAXPORT_ASSIGN_OR_RETURN(const Matrix routed, experts(index, x));
      add(h, routed);
    }
    MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, "post_feedforward_layernorm"), h));
    add(x, h);
    if (layer_width_ > 0) MAXPORT_RETURN_IF_ERROR(add_layer_input(index, x));
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<float> factor, vector(layer_name(index, "layer_scalar")));
    MAXPORT_RETURN_IF_ERROR(check_shape(layer_name(index, "layer_scalar"), {static_cast<int64_t>(factor.size())}, {1}));
    scale(x, factor[0]);
    return {};
  }

 protected:
  Result<Matrix> attention(int64_t index, const Batch& batch, Matrix h) override {
    const std::string prefix = layer_name(index, "self_attn.");
    MAXPORT_ASSIGN_OR_RETURN(const int64_t dim, head_dim(index));
    MAXPORT_ASSIGN_OR_RETURN(Matrix q, linear(prefix + "q_proj", h, traits_.bias_qkv));
    MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "q_proj", {q.cols}, {heads_ * dim}));
    MAXPORT_RETURN_IF_ERROR(norm(prefix + "q_norm", q));
    apply_rotary(q, dim, batch.positions, rotary(index));
    if (index < first_shared_) {
      MAXPORT_ASSIGN_OR_RETURN(kept_[layer_type(index)], keys_and_values(index, batch, h, dim));
    }
    // Layers that share use those of the last layer of their type that does not.
    const auto kept = kept_.find(layer_type(index));
    if (kept == kept_.end() || kept->second.keys.cols % dim != 0 || heads_ * dim % kept->second.keys.cols != 0)
      return fail(ErrorKind::kInvalidArgument, "{}: no layer before it has keys that fit {} heads of {}", prefix,
                  heads_, dim);
    AttentionOptions options{heads_, kept->second.keys.cols / dim, dim, dim, 1, score_cap_};
    if (layer_type(index) == "sliding_attention") options.window = window_;
    return linear(prefix + "o_proj", attend(q, kept->second.keys, kept->second.values, batch, options),
                  traits_.bias_out);
  }

 private:
  struct KeysAndValues {
    Matrix keys, values;
  };

  Result<int64_t> head_dim(int64_t index) const {
    const std::string name = layer_name(index, "self_attn.q_norm.weight");
    MAXPORT_ASSIGN_OR_RETURN(const Shape shape, weights_.shape(name));
    if (shape.size() != 1 || shape[0] < 2)
      return fail(ErrorKind::kInvalidArgument, "{}: no head has the shape {}", name, shape_text(shape));
    return shape[0];
  }

  Result<KeysAndValues> keys_and_values(int64_t index, const Batch& batch, const Matrix& h, int64_t dim) const {
    const std::string prefix = layer_name(index, "self_attn.");
    KeysAndValues out;
    MAXPORT_ASSIGN_OR_RETURN(out.keys, linear(prefix + "k_proj", h, traits_.bias_qkv));
    if (value_is_key_ && layer_type(index) != "sliding_attention") {
      out.values = out.keys;
    } else {
      MAXPORT_ASSIGN_OR_RETURN(out.values, linear(prefix + "v_proj", h, traits_.bias_qkv));
    }
    MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "k_proj and v_proj", {out.keys.cols, out.values.cols},
                                        {out.keys.cols / dim * dim, out.keys.cols}));
    MAXPORT_RETURN_IF_ERROR(norm(prefix + "k_norm", out.keys));
    rms_norm(out.values, dim, epsilon_);
    apply_rotary(out.keys, dim, batch.positions, rotary(index));
    return out;
  }

  /// The mixture for a layer's stream before the feed-forward network.
  Result<Matrix> experts(int64_t index, const Matrix& x) const {
    Matrix asked = x;
    rms_norm(asked, width_, epsilon_);
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<float> factors, vector(layer_name(index, "router.scale")));
    MAXPORT_RETURN_IF_ERROR(
        check_shape(layer_name(index, "router.scale"), {static_cast<int64_t>(factors.size())}, {width_}));
    const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(width_)));
    for (size_t i = 0; i < asked.data.size(); ++i) asked.data[i] *= factors[i % factors.size()] * root;
    MAXPORT_ASSIGN_OR_RETURN(Matrix logits, linear(layer_name(index, "router.proj"), asked));
    MAXPORT_RETURN_IF_ERROR(check_shape(layer_name(index, "router.proj"), {logits.cols}, {experts_}));
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<float> weights, vector(layer_name(index, "router.per_expert_scale")));
    MAXPORT_RETURN_IF_ERROR(
        check_shape(layer_name(index, "router.per_expert_scale"), {static_cast<int64_t>(weights.size())}, {experts_}));
    Choices choices = softmax_then_top(std::move(logits), chosen_, true);
    for (auto& row : choices)
      for (Choice& choice : row) choice.weight *= weights[static_cast<size_t>(choice.expert)];
    Matrix h = x;
    MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, "pre_feedforward_layernorm_2"), h));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, mix_experts(h, choices, experts_, [&](int64_t e, const Matrix& rows) {
                               return expert(layer_name(index, "experts."), e, rows);
                             }));
    MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, "post_feedforward_layernorm_2"), out));
    return out;
  }

  /// Tensors are stored [expert, outputs, inputs]; the first half of the outputs is the gate.
  Result<Matrix> expert(const std::string& prefix, int64_t e, const Matrix& rows) const {
    MAXPORT_ASSIGN_OR_RETURN(const Matrix both, stacked_linear(prefix + "gate_up_proj", e, rows));
    Matrix gate = columns(both, 0, both.cols / 2);
    activate(activation_, gate);
    multiply_elements(gate, columns(both, both.cols / 2, both.cols / 2));
    return stacked_linear(prefix + "down_proj", e, gate);
  }

  Result<Matrix> stacked_linear(const std::string& name, int64_t e, const Matrix& rows) const {
    MAXPORT_ASSIGN_OR_RETURN(const Tensor weight, weights_.slice(name, 0, e));
    MAXPORT_RETURN_IF_ERROR(check_shape(name, weight.shape, {-1, rows.cols}));
    Matrix out(rows.rows, weight.shape[0]);
    multiply_transposed(view(out), view(rows), {weight.data.data(), out.cols, rows.cols, rows.cols});
    return out;
  }

  Result<> add_layer_input(int64_t index, Matrix& x) const {
    MAXPORT_ASSIGN_OR_RETURN(Matrix gate, linear(layer_name(index, "per_layer_input_gate"), x));
    MAXPORT_RETURN_IF_ERROR(check_shape(layer_name(index, "per_layer_input_gate"), {gate.cols}, {layer_width_}));
    activate(activation_, gate);
    multiply_elements(gate, columns(layer_inputs_, index * layer_width_, layer_width_));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, linear(layer_name(index, "per_layer_projection"), gate));
    MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, "post_per_layer_input_norm"), out));
    add(x, out);
    return {};
  }

  bool value_is_key_ = false, has_experts_ = false;
  int64_t experts_ = 0, chosen_ = 0, layer_width_ = 0, first_shared_ = 0;
  Matrix layer_inputs_;  // [tokens, layers * layer_width]
  std::map<std::string, KeysAndValues> kept_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> huggingface_gemma4(HuggingfaceModel model) {
  HuggingfaceTraits traits;
  traits.scaled_embedding = true;
  traits.rope_by_layer_type = true;
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, model.config->boolean_or("attention_bias", false));
  traits.bias_out = traits.bias_qkv;
  MAXPORT_ASSIGN_OR_RETURN(auto types, layer_types_or_period(*model.config, 6));
  return make_huggingface<Gemma4Decoder>(std::move(model), traits, std::move(types));
}

}  // namespace maxport::forward
