#include "forward/huggingface/decoder.h"

#include <array>
#include <cmath>

#include "forward/huggingface/rotary_settings.h"
#include "forward/matmul.h"

namespace maxport::forward {
namespace {

// Where releases of transformers and their multimodal models keep the decoder, and the output head that goes with it.
struct Place {
  std::string_view prefix, head;
};
constexpr std::array kPlaces = {
    Place{"model.language_model.", "lm_head.weight"},
    Place{"language_model.model.", "language_model.lm_head.weight"},
    Place{"thinker.model.", "thinker.lm_head.weight"},
    Place{"model.", "lm_head.weight"},
};

}  // namespace

HuggingfaceDecoder::HuggingfaceDecoder(HuggingfaceModel model, HuggingfaceTraits traits)
    : model_(std::move(model)), traits_(traits), weights_(model_.directory), config_(*model_.config) {}

Result<> HuggingfaceDecoder::find_names() {
  for (const Place& place : kPlaces) {
    const std::string embedding = std::string(place.prefix) + "embed_tokens.weight";
    if (!weights_.contains(embedding)) continue;
    prefix_ = place.prefix;
    MAXPORT_ASSIGN_OR_RETURN(const auto tied, config_.tied_head(weights_.contains(place.head)));
    tied_ = tied.tied;
    head_name_ = tied.tied ? embedding : std::string(place.head);
    return {};
  }
  return fail(ErrorKind::kUnsupported, "{}: no tensor is called \"...embed_tokens.weight\"",
              printable(model_.directory->folder()));
}

Result<> HuggingfaceDecoder::prepare(std::vector<std::string> layer_types) {
  MAXPORT_RETURN_IF_ERROR(find_names());
  MAXPORT_ASSIGN_OR_RETURN(layers_, config_.integer("num_hidden_layers"));
  MAXPORT_ASSIGN_OR_RETURN(width_, config_.integer("hidden_size"));
  MAXPORT_ASSIGN_OR_RETURN(heads_, config_.integer("num_attention_heads"));
  MAXPORT_ASSIGN_OR_RETURN(kv_heads_, config_.integer("num_key_value_heads"));
  MAXPORT_ASSIGN_OR_RETURN(head_dim_, config_.integer("head_dim"));
  MAXPORT_ASSIGN_OR_RETURN(window_, config_.integer_or("sliding_window", 0));
  MAXPORT_ASSIGN_OR_RETURN(epsilon_, config_.number_or("rms_norm_eps", 1e-6));
  MAXPORT_ASSIGN_OR_RETURN(score_cap_, config_.number_or("attn_logit_softcapping", 0));
  MAXPORT_ASSIGN_OR_RETURN(logit_cap_, config_.number_or("final_logit_softcapping", 0));
  double scalar = static_cast<double>(head_dim_);
  if (traits_.query_pre_attn_scalar) {
    MAXPORT_ASSIGN_OR_RETURN(scalar, config_.number("query_pre_attn_scalar"));
  }
  score_scale_ = 1 / std::sqrt(scalar);
  if (traits_.scaled_embedding) {
    embedding_scale_ = static_cast<float>(std::sqrt(static_cast<double>(width_)));
    if (model_.like_maxtext && traits_.maxtext_rounds_scale) round_to_bfloat16({&embedding_scale_, 1});
  }
  const char* role = config_.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  MAXPORT_ASSIGN_OR_RETURN(const auto activation, config_.optional_text(role));
  MAXPORT_ASSIGN_OR_RETURN(activation_, activation_of(activation.value_or("silu"), false));
  if (heads_ % kv_heads_ != 0)
    return fail(ErrorKind::kInvalidArgument, "{} query heads cannot share {} key and value heads", heads_, kv_heads_);

  layer_types_ = std::move(layer_types);
  layer_types_.resize(static_cast<size_t>(layers_), "full_attention");
  for (const std::string& type : layer_types_) {
    const std::string key = traits_.rope_by_layer_type ? type : "";
    if (rotaries_.contains(key)) continue;
    MAXPORT_ASSIGN_OR_RETURN(rotaries_[key], huggingface_rotary(config_, key, head_dim_));
    MAXPORT_RETURN_IF_ERROR(check_fits(rotaries_[key], head_dim_));
  }
  return {};
}

std::string HuggingfaceDecoder::description() const { return "Hugging Face " + config_.section_model_type(); }

std::string HuggingfaceDecoder::layer_name(int64_t index, std::string_view rest) const {
  return fmt::format("{}layers.{}.{}", prefix_, index, rest);
}

Result<std::vector<float>> HuggingfaceDecoder::vector(const std::string& name) const {
  MAXPORT_ASSIGN_OR_RETURN(Tensor tensor, weights_.tensor(name));
  return std::move(tensor.data);
}

Result<> HuggingfaceDecoder::norm(const std::string& name, Matrix& x) const {
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<float> weight, vector(name + ".weight"));
  if (weight.empty() || x.cols % static_cast<int64_t>(weight.size()) != 0)
    return check_shape(name, {static_cast<int64_t>(weight.size())}, {x.cols});
  rms_norm(x, weight, epsilon_, traits_.norm_offset);
  return {};
}

Result<Matrix> HuggingfaceDecoder::linear(const std::string& name, const Matrix& h, bool bias) const {
  MAXPORT_ASSIGN_OR_RETURN(const Tensor weight, weights_.tensor(name + ".weight"));
  MAXPORT_RETURN_IF_ERROR(check_shape(name, weight.shape, {-1, h.cols}));
  Matrix out(h.rows, weight.shape[0]);
  multiply_transposed(view(out), view(h), {weight.data.data(), weight.shape[0], h.cols, h.cols});
  if (!bias) return out;
  MAXPORT_ASSIGN_OR_RETURN(const Tensor add, weights_.tensor(name + ".bias"));
  MAXPORT_RETURN_IF_ERROR(check_shape(name + ".bias", add.shape, {out.cols}));
  add_bias(out, add.data);
  return out;
}

Result<Matrix> HuggingfaceDecoder::gated_mlp(const std::string& prefix, const Matrix& h, bool bias) const {
  MAXPORT_ASSIGN_OR_RETURN(Matrix gate, linear(prefix + "gate_proj", h, bias));
  activate(activation_, gate);
  MAXPORT_ASSIGN_OR_RETURN(const Matrix up, linear(prefix + "up_proj", h, bias));
  MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "up_proj", {up.cols}, {gate.cols}));
  multiply_elements(gate, up);
  return linear(prefix + "down_proj", gate, bias);
}

Result<Matrix> HuggingfaceDecoder::embed(const Batch& batch) {
  MAXPORT_ASSIGN_OR_RETURN(Matrix x, weights_.rows(prefix_ + "embed_tokens.weight", batch.ids));
  MAXPORT_RETURN_IF_ERROR(check_shape(prefix_ + "embed_tokens.weight", {x.cols}, {width_}));
  scale(x, embedding_scale_);
  return x;
}

Result<> HuggingfaceDecoder::layer(int64_t index, const Batch& batch, Matrix& x) {
  // Each half adds to the stream what its step makes of it.
  const auto half = [&](std::string_view before, std::string_view after, auto step) -> Result<> {
    Matrix h = x;
    if (!before.empty()) MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, before), h));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, step(std::move(h)));
    if (!after.empty()) MAXPORT_RETURN_IF_ERROR(norm(layer_name(index, after), out));
    if (out.cols != x.cols) return check_shape(layer_name(index, "output"), {out.cols}, {x.cols});
    add(x, out);
    return {};
  };
  MAXPORT_RETURN_IF_ERROR(half(traits_.norm_before_attention, traits_.norm_after_attention,
                               [&](Matrix h) { return attention(index, batch, std::move(h)); }));
  return half(traits_.norm_before_mlp, traits_.norm_after_mlp,
              [&](Matrix h) { return feed_forward(index, std::move(h)); });
}

Result<Matrix> HuggingfaceDecoder::attention(int64_t index, const Batch& batch, Matrix h) {
  const std::string prefix = layer_name(index, "self_attn.");
  MAXPORT_ASSIGN_OR_RETURN(Matrix q, linear(prefix + "q_proj", h, traits_.bias_qkv));
  MAXPORT_ASSIGN_OR_RETURN(Matrix k, linear(prefix + "k_proj", h, traits_.bias_qkv));
  MAXPORT_ASSIGN_OR_RETURN(const Matrix v, linear(prefix + "v_proj", h, traits_.bias_qkv));
  if (q.cols != heads_ * head_dim_ || k.cols != kv_heads_ * head_dim_ || v.cols != k.cols)
    return fail(ErrorKind::kInvalidArgument, "{}: projections of {}, {} and {} columns are not {} and {} heads of {}",
                prefix, q.cols, k.cols, v.cols, heads_, kv_heads_, head_dim_);
  if (traits_.query_norm != QueryNorm::kNone) {
    MAXPORT_RETURN_IF_ERROR(norm(prefix + "q_norm", q));
    MAXPORT_RETURN_IF_ERROR(norm(prefix + "k_norm", k));
  }
  apply_rotary(q, head_dim_, batch.positions, rotary(index));
  apply_rotary(k, head_dim_, batch.positions, rotary(index));
  AttentionOptions options{heads_, kv_heads_, head_dim_, head_dim_, score_scale_, score_cap_};
  if (layer_type(index) == "sliding_attention") options.window = window_;
  std::vector<float> sinks;
  if (traits_.sinks) {
    MAXPORT_ASSIGN_OR_RETURN(sinks, vector(prefix + "sinks"));
    MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "sinks", {static_cast<int64_t>(sinks.size())}, {heads_}));
    options.sinks = sinks;
  }
  return linear(prefix + "o_proj", attend(q, k, v, batch, options), traits_.bias_out);
}

Result<Matrix> HuggingfaceDecoder::feed_forward(int64_t index, Matrix h) {
  return gated_mlp(layer_name(index, "mlp."), h, traits_.bias_mlp);
}

Result<Matrix> HuggingfaceDecoder::head(Matrix x) {
  MAXPORT_RETURN_IF_ERROR(norm(prefix_ + "norm", x));
  const float factor = tied_ && model_.like_maxtext ? embedding_scale_ : 1;
  const auto change = [&](std::span<float> table) {
    if (!tied_ || !model_.like_maxtext) return;
    // MaxText's table holds the scaled embedding, and its logits are divided by the exact root again.
    for (float& value : table) value *= factor;
    round_to_bfloat16(table);
  };
  MAXPORT_ASSIGN_OR_RETURN(Matrix logits, multiply_by_rows(weights_, head_name_, x, change));
  if (factor != 1) scale(logits, static_cast<float>(1 / std::sqrt(static_cast<double>(width_))));
  soft_cap(logits, logit_cap_);
  return logits;
}

}  // namespace maxport::forward
