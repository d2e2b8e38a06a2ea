// The decoder blocks gemma4 and gemma4_small of MaxText: models/gemma4.py, models/gemma4_small.py.
#include <cmath>
#include <limits>

#include "forward/maxtext/families.h"
#include "forward/maxtext/rotary_settings.h"
#include "forward/maxtext/routed_experts.h"

namespace maxport::forward {
namespace {

constexpr double kLayerEpsilon = 1e-6;  // of norms that are not given the setting
constexpr int64_t kPeriod = 6;          // the last layer of each period is global
constexpr int64_t kSmallestPeriod = 5;  // for the model gemma4-e2b

Result<int64_t> integer_or_zero(const maxtext::Settings& settings, std::string_view key) {
  const maxtext::Setting* found = settings.find(key);
  if (found == nullptr || found->value.is_null()) return 0;
  return settings.integer(key);
}

class Gemma4Decoder : public MaxtextRoutedDecoder {
 public:
  using MaxtextRoutedDecoder::MaxtextRoutedDecoder;

  Result<> prepare() override {
    MAXPORT_RETURN_IF_ERROR(MaxtextRoutedDecoder::prepare());
    MAXPORT_ASSIGN_OR_RETURN(const std::string block, settings_.text("decoder_block"));
    small_ = block == "gemma4_small";
    const std::string name = settings_.model_name().value_or("default");
    period_ = small_ && name == "gemma4-e2b" ? kSmallestPeriod : kPeriod;
    if (small_ && model_.scanned)
      return fail(ErrorKind::kUnsupported,
                  "MaxText does not scan the layers of gemma4_small, but this checkpoint's are stacked");
    MAXPORT_RETURN_IF_ERROR(read_attention());
    MAXPORT_ASSIGN_OR_RETURN(norm_after_attention_, settings_.boolean("use_post_attn_norm"));
    MAXPORT_ASSIGN_OR_RETURN(norm_after_mlp_, settings_.boolean("use_post_ffw_norm"));
    MAXPORT_ASSIGN_OR_RETURN(normalize_, settings_.boolean("norm_topk_prob"));
    if (!small_) return {};
    norm_after_attention_ = norm_after_mlp_ = true;
    MAXPORT_ASSIGN_OR_RETURN(layer_width_, integer_or_zero(settings_, "hidden_size_per_layer_input"));
    MAXPORT_ASSIGN_OR_RETURN(const int64_t shared, integer_or_zero(settings_, "num_kv_shared_layers"));
    first_shared_ = layers_ - shared;
    if (shared < 0 || first_shared_ < 1)
      return fail(ErrorKind::kInvalidArgument, "{} of {} layers cannot share keys and values", shared, layers_);
    return {};
  }

  Result<Matrix> embed(const Batch& batch) override {
    MAXPORT_ASSIGN_OR_RETURN(Matrix x, MaxtextDecoder::embed(batch));
    if (layer_width_ == 0) return x;
    const LayerPlace here{"decoder.per_layer_embedder"};
    MAXPORT_ASSIGN_OR_RETURN(layer_inputs_, dense(here, "per_layer_model_projection", x));
    scale(layer_inputs_, static_cast<float>(1 / std::sqrt(static_cast<double>(width_))));
    MAXPORT_RETURN_IF_ERROR(norm(here, "per_layer_projection_norm", layer_inputs_, epsilon_));
    const std::string table = "decoder.per_layer_embedder.embed_tokens_per_layer";
    MAXPORT_ASSIGN_OR_RETURN(Matrix own, weights_.rows(table, batch.ids));
    MAXPORT_RETURN_IF_ERROR(
        check_shape(table, {own.cols, layer_inputs_.cols}, {layers_ * layer_width_, layers_ * layer_width_}));
    scale(own, static_cast<float>(std::sqrt(static_cast<double>(layer_width_))));
    add(layer_inputs_, own);
    scale(layer_inputs_, static_cast<float>(1 / std::sqrt(2.0)));
    return x;
  }

  Result<> layer(int64_t index, const Batch& batch, Matrix& x) override {
    const LayerPlace here = place(index);
    Matrix h = x;
    MAXPORT_RETURN_IF_ERROR(norm(here, "pre_self_attention_norm", h));
    MAXPORT_ASSIGN_OR_RETURN(h, attention(index, batch, std::move(h)));
    if (norm_after_attention_) MAXPORT_RETURN_IF_ERROR(norm(here, "post_self_attention_norm", h));
    add(x, h);
    h = x;
    MAXPORT_RETURN_IF_ERROR(norm(here, "pre_ffw_norm", h));
    MAXPORT_ASSIGN_OR_RETURN(h, has_experts() ? mixture(here, h, x) : gated_mlp(here, "mlp", h));
    if (norm_after_mlp_) MAXPORT_RETURN_IF_ERROR(norm(here, "post_ffw_norm", h));
    add(x, h);
    if (layer_width_ > 0) MAXPORT_RETURN_IF_ERROR(add_layer_input(here, index, x));
    MAXPORT_ASSIGN_OR_RETURN(const Tensor factor, parameter(here, "layer_scalar"));
    MAXPORT_RETURN_IF_ERROR(check_shape("layer_scalar", factor.shape, {1}));
    scale(x, factor.data[0]);
    return {};
  }

 protected:
  /// Blocks of a period are stacked, and in them the local layers; what is left over has no block.
  LayerPlace place(int64_t index) const override {
    if (!model_.scanned) return MaxtextDecoder::place(index);
    const int64_t block = index / period_, inside = index % period_;
    if (block < layers_ / period_) {
      if (is_global(index)) return {"decoder.scanned_blocks.global_layer", {block}};
      return {"decoder.scanned_blocks.local_layers", {block, inside}};
    }
    return {"decoder.layers_remainder.local_layers", {inside}};
  }

  Result<Matrix> attention(int64_t index, const Batch& batch, Matrix h) override {
    const LayerPlace here = place(index);
    const Kind& kind = is_global(index) ? global_ : local_;
    MAXPORT_ASSIGN_OR_RETURN(Matrix q, dense(here, "self_attention.query", h));
    MAXPORT_RETURN_IF_ERROR(check_shape("self_attention.query", {q.cols}, {heads_ * kind.head_dim}));
    MAXPORT_RETURN_IF_ERROR(norm(here, "self_attention.query_norm", q, epsilon_));
    apply_rotary(q, kind.head_dim, batch.positions, kind.rotary);
    KeysAndValues& kept = kept_[is_global(index)];
    if (index < first_shared_) {
      MAXPORT_ASSIGN_OR_RETURN(kept, keys_and_values(here, kind, batch, h));
    }
    // Layers that share use those of the last layer of their type that does not.
    if (kept.keys.rows == 0)
      return fail(ErrorKind::kInvalidArgument, "layer {} shares keys, but no layer of its type before it has any",
                  index);
    AttentionOptions options{heads_, kind.kv_heads, kind.head_dim, kind.head_dim, 1, score_cap_};
    if (!is_global(index)) options.window = window_;
    return dense(here, "self_attention.out", attend(q, kept.keys, kept.values, batch, options), 2);
  }

 private:
  struct Kind {
    int64_t head_dim = 0, kv_heads = 0;
    bool value_is_key = false;
    Rotary rotary;
  };
  struct KeysAndValues {
    Matrix keys, values;
  };

  bool is_global(int64_t index) const { return index % period_ == period_ - 1; }
  bool has_experts() const { return !small_ && count_ > 1; }

  Result<> read_attention() {
    local_ = {head_dim_, kv_heads_, false, {}};
    global_ = local_;
    MAXPORT_ASSIGN_OR_RETURN(const int64_t kv_heads, integer_or_zero(settings_, "global_num_kv_heads"));
    MAXPORT_ASSIGN_OR_RETURN(const int64_t head_dim, integer_or_zero(settings_, "global_head_dim"));
    if (kv_heads > 0) global_.kv_heads = kv_heads;
    if (head_dim > 0) global_.head_dim = head_dim;
    if (heads_ % global_.kv_heads != 0)
      return fail(ErrorKind::kInvalidArgument, "{} query heads cannot share {} key heads", heads_, global_.kv_heads);
    MAXPORT_ASSIGN_OR_RETURN(const bool shares, settings_.boolean("share_kv_projections"));
    global_.value_is_key = shares && !small_;
    MAXPORT_ASSIGN_OR_RETURN(value_scale_, settings_.boolean("v_norm_with_scale"));
    MAXPORT_ASSIGN_OR_RETURN(local_.rotary, rotary_of("local", local_.head_dim));
    MAXPORT_ASSIGN_OR_RETURN(global_.rotary, rotary_of("global", global_.head_dim));
    return {};
  }

  Result<Rotary> rotary_of(const std::string& kind, int64_t head_dim) const {
    MaxtextRotaryRequest request{.head_dim = head_dim, .local = kind == "local"};
    MAXPORT_ASSIGN_OR_RETURN(request.partial_rotary_factor, settings_.number(kind + "_rope_proportion"));
    MAXPORT_ASSIGN_OR_RETURN(const double own, settings_.number(kind + "_rope_max_timescale"));
    if (own > 0) request.max_timescale = own;
    return maxtext_rotary(settings_, request);
  }

  Result<KeysAndValues> keys_and_values(const LayerPlace& here, const Kind& kind, const Batch& batch,
                                        const Matrix& h) const {
    KeysAndValues out;
    MAXPORT_ASSIGN_OR_RETURN(out.keys, dense(here, "self_attention.key", h));
    if (kind.value_is_key) {
      out.values = out.keys;
    } else {
      MAXPORT_ASSIGN_OR_RETURN(out.values, dense(here, "self_attention.value", h));
    }
    const int64_t width = kind.kv_heads * kind.head_dim;
    MAXPORT_RETURN_IF_ERROR(
        check_shape("self_attention (key, value)", {out.keys.cols, out.values.cols}, {width, width}));
    MAXPORT_RETURN_IF_ERROR(norm(here, "self_attention.key_norm", out.keys, epsilon_));
    if (value_scale_) {
      MAXPORT_RETURN_IF_ERROR(norm(here, "self_attention.value_norm", out.values, epsilon_));
    } else {
      rms_norm(out.values, kind.head_dim, epsilon_);
    }
    apply_rotary(out.keys, kind.head_dim, batch.positions, kind.rotary);
    return out;
  }

  /// Shared experts for the normed stream `h`, and routed ones that norm the stream `x` on their own.
  Result<Matrix> mixture(const LayerPlace& here, const Matrix& h, const Matrix& x) const {
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, gated_mlp(here, "mlp.moe_block.shared_experts", h));
    MAXPORT_RETURN_IF_ERROR(norm(here, "mlp.post_feedforward_layernorm_1", out));
    MAXPORT_ASSIGN_OR_RETURN(const Choices choices, choose(here, x));
    Matrix inputs = x;
    MAXPORT_RETURN_IF_ERROR(norm(here, "mlp.pre_feedforward_layernorm_2", inputs));
    MAXPORT_ASSIGN_OR_RETURN(Matrix routed, experts(here, "mlp.moe_block.MoeBlock_0", inputs, choices));
    MAXPORT_RETURN_IF_ERROR(norm(here, "mlp.post_feedforward_layernorm_2", routed));
    add(out, routed);
    return out;
  }

  Result<Choices> choose(const LayerPlace& here, Matrix x) const {
    rms_norm(x, width_, epsilon_);
    MAXPORT_ASSIGN_OR_RETURN(const Tensor factors, parameter(here, "mlp.pre_forward_scale_2"));
    MAXPORT_RETURN_IF_ERROR(check_shape("mlp.pre_forward_scale_2", factors.shape, {width_}));
    const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(width_)));
    for (size_t i = 0; i < x.data.size(); ++i) x.data[i] *= root * factors.data[i % factors.data.size()];
    MAXPORT_ASSIGN_OR_RETURN(Matrix logits, gate(here, "mlp.moe_block.MoeBlock_0", x, routed_bias_));
    MAXPORT_ASSIGN_OR_RETURN(const Tensor weights, parameter(here, "mlp.moe_block.MoeBlock_0.per_expert_scale"));
    MAXPORT_RETURN_IF_ERROR(check_shape("mlp.moe_block.MoeBlock_0.per_expert_scale", weights.shape, {count_}));
    Choices choices = softmax_then_top(std::move(logits), chosen_, normalize_);
    for (auto& row : choices)
      for (Choice& choice : row) choice.weight *= weights.data[static_cast<size_t>(choice.expert)];
    return choices;
  }

  Result<> add_layer_input(const LayerPlace& here, int64_t index, Matrix& x) const {
    MAXPORT_ASSIGN_OR_RETURN(Matrix gate, dense(here, "per_layer_input_gate", x));
    MAXPORT_RETURN_IF_ERROR(check_shape("per_layer_input_gate", {gate.cols}, {layer_width_}));
    activate(Activation::kGeluTanh, gate);
    multiply_elements(gate, columns(layer_inputs_, index * layer_width_, layer_width_));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, dense(here, "per_layer_projection", gate));
    MAXPORT_RETURN_IF_ERROR(norm(here, "post_per_layer_input_norm", out, epsilon_));
    add(x, out);
    return {};
  }

  bool small_ = false, normalize_ = false, value_scale_ = false, norm_after_attention_ = true, norm_after_mlp_ = true;
  int64_t period_ = kPeriod, layer_width_ = 0;
  int64_t first_shared_ = std::numeric_limits<int64_t>::max();
  Kind local_, global_;
  Matrix layer_inputs_;  // [tokens, layers * layer_width]
  std::map<bool, KeysAndValues> kept_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> maxtext_gemma4(MaxtextModel model) {
  MaxtextTraits traits;
  traits.layer_norm_epsilon = kLayerEpsilon;
  return make_maxtext<Gemma4Decoder>(std::move(model), traits);
}

}  // namespace maxport::forward
