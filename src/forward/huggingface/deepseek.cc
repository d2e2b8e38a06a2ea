// DeepSeek's decoders as transformers defines them: modeling_deepseek_v2, modeling_deepseek_v3, modeling_deepseek_v32.
#include <cmath>

#include "forward/grouped_routing.h"
#include "forward/huggingface/families.h"
#include "forward/huggingface/rotary_settings.h"
#include "forward/huggingface/routed_experts.h"
#include "forward/latent_attention.h"

namespace maxport::forward {
namespace {

// The norms inside the attention do not take the configuration's epsilon.
constexpr double kInnerEpsilon = 1e-6;

class DeepseekDecoder : public RoutedDecoder {
 public:
  using RoutedDecoder::RoutedDecoder;

  Result<> prepare(std::vector<std::string> layer_types) override {
    MAXPORT_RETURN_IF_ERROR(RoutedDecoder::prepare(std::move(layer_types)));
    const std::string type = config_.section_model_type();
    second_version_ = type == "deepseek_v2";
    MAXPORT_RETURN_IF_ERROR(read_attention());
    MAXPORT_RETURN_IF_ERROR(read_routing());
    if (type == "deepseek_v32") {
      MAXPORT_ASSIGN_OR_RETURN(indexer_.heads, config_.integer("index_n_heads"));
      MAXPORT_ASSIGN_OR_RETURN(indexer_.head_dim, config_.integer("index_head_dim"));
      MAXPORT_ASSIGN_OR_RETURN(indexer_.count, config_.integer("index_topk"));
      if (!low_rank_ || indexer_.heads < 1 || indexer_.count < 1 || indexer_.head_dim < latent_.rope_dim)
        return fail(ErrorKind::kInvalidArgument,
                    "an indexer needs q_lora_rank, heads, keys to choose and heads of at least {} elements",
                    latent_.rope_dim);
    }
    return {};
  }

 protected:
  Result<Matrix> attention(int64_t index, const Batch& batch, Matrix h) override {
    const std::string prefix = layer_name(index, "self_attn.");
    Matrix latent;
    if (low_rank_) {
      MAXPORT_ASSIGN_OR_RETURN(latent, linear(prefix + "q_a_proj", h, traits_.bias_qkv));
      MAXPORT_RETURN_IF_ERROR(inner_norm(prefix + "q_a_layernorm", latent));
    }
    MAXPORT_ASSIGN_OR_RETURN(Matrix q, low_rank_ ? linear(prefix + "q_b_proj", latent) : linear(prefix + "q_proj", h));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix both, linear(prefix + "kv_a_proj_with_mqa", h, traits_.bias_qkv));
    MAXPORT_RETURN_IF_ERROR(check_shape(prefix + "kv_a_proj_with_mqa", {both.cols}, {kv_rank_ + latent_.rope_dim}));
    Matrix compressed = columns(both, 0, kv_rank_);
    MAXPORT_RETURN_IF_ERROR(inner_norm(prefix + "kv_a_layernorm", compressed));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix kv, linear(prefix + "kv_b_proj", compressed));
    MAXPORT_RETURN_IF_ERROR(
        check_shape(prefix + "kv_b_proj and q_proj", {kv.cols, q.cols},
                    {heads_ * (latent_.nope_dim + latent_.value_dim), heads_ * (latent_.nope_dim + latent_.rope_dim)}));
    HiddenKeys hidden;
    if (indexer_.count > 0) {
      MAXPORT_ASSIGN_OR_RETURN(hidden, indexed(prefix + "indexer.", batch, h, latent));
    }
    const Matrix out = attend_latent(std::move(q), kv, columns(both, kv_rank_, latent_.rope_dim), batch, rotary_,
                                     latent_, std::move(hidden));
    return linear(prefix + "o_proj", out, traits_.bias_out);
  }

  Result<Matrix> feed_forward(int64_t index, Matrix h) override {
    const std::string prefix = layer_name(index, "mlp.");
    if (index < dense_layers_) return gated_mlp(prefix, h, traits_.bias_mlp);
    MAXPORT_ASSIGN_OR_RETURN(Matrix scores, gate(prefix + "gate", h));
    MAXPORT_ASSIGN_OR_RETURN(Choices choices, choose(prefix, std::move(scores)));
    scale_choices(choices, scaling_);
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, experts(prefix, {}, h, choices));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix shared, gated_mlp(prefix + "shared_experts.", h, traits_.bias_mlp));
    add(out, shared);
    return out;
  }

 private:
  Result<> read_attention() {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t q_rank, config_.integer_or("q_lora_rank", 0));
    low_rank_ = q_rank > 0;
    MAXPORT_ASSIGN_OR_RETURN(kv_rank_, config_.integer("kv_lora_rank"));
    latent_.heads = heads_;
    MAXPORT_ASSIGN_OR_RETURN(latent_.nope_dim, config_.integer("qk_nope_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(latent_.rope_dim, config_.integer("qk_rope_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(latent_.value_dim, config_.integer("v_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(rotary_, huggingface_rotary(config_, "", latent_.rope_dim));
    MAXPORT_ASSIGN_OR_RETURN(const bool interleaved, config_.boolean_or("rope_interleave", true));
    rotary_.pairing = interleaved || second_version_ ? Pairing::kInterleaved : Pairing::kHalves;
    latent_.scale = 1 / std::sqrt(static_cast<double>(latent_.nope_dim + latent_.rope_dim));
    MAXPORT_ASSIGN_OR_RETURN(const huggingface::Rope rope, config_.rope());
    const auto number = [&](const char* name) {
      const auto found = rope.parameters.find(name);
      return found != rope.parameters.end() && found->is_number() ? found->get<double>() : 0.0;
    };
    if (rope.type != "default" && number("mscale_all_dim") != 0)
      latent_.scale *= std::pow(yarn_mscale(number("factor"), number("mscale_all_dim")), 2);
    return {};
  }

  Result<> read_routing() {
    MAXPORT_ASSIGN_OR_RETURN(dense_layers_, config_.integer_or("first_k_dense_replace", 0));
    MAXPORT_ASSIGN_OR_RETURN(const double scaling, config_.number_or("routed_scaling_factor", 1));
    scaling_ = static_cast<float>(scaling);
    MAXPORT_ASSIGN_OR_RETURN(normalize_, config_.boolean_or("norm_topk_prob", !second_version_));
    MAXPORT_ASSIGN_OR_RETURN(const auto method, config_.optional_text("topk_method"));
    const bool grouped = !second_version_ || method.value_or("greedy") == "group_limited_greedy";
    routing_ = {.count = chosen_, .best_two = !second_version_};
    if (grouped) {
      MAXPORT_ASSIGN_OR_RETURN(routing_.groups, config_.integer_or("n_group", 1));
      MAXPORT_ASSIGN_OR_RETURN(routing_.kept_groups, config_.integer_or("topk_group", 1));
    }
    return check_grouped_routing(routing_, count_);
  }

  /// The second version weighs by the softmax of all experts, later ones by sigmoids, which a bias ranks.
  Result<Choices> choose(const std::string& prefix, Matrix scores) const {
    if (second_version_) {
      softmax_rows(scores);
      return choose_within_groups(scores, scores, routing_);
    }
    for (float& score : scores.data) score = sigmoid(score);
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<float> bias, vector(prefix + "gate.e_score_correction_bias"));
    MAXPORT_RETURN_IF_ERROR(
        check_shape(prefix + "gate.e_score_correction_bias", {static_cast<int64_t>(bias.size())}, {count_}));
    Matrix ranking = scores;
    add_bias(ranking, bias);
    Choices choices = choose_within_groups(ranking, scores, routing_);
    if (normalize_) normalize_choices(choices, 1e-20f);
    return choices;
  }

  Result<> inner_norm(const std::string& name, Matrix& x) const {
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<float> weight, vector(name + ".weight"));
    MAXPORT_RETURN_IF_ERROR(check_shape(name, {static_cast<int64_t>(weight.size())}, {x.cols}));
    rms_norm(x, weight, kInnerEpsilon);
    return {};
  }

  Result<HiddenKeys> indexed(const std::string& prefix, const Batch& batch, const Matrix& h,
                             const Matrix& latent) const {
    MAXPORT_ASSIGN_OR_RETURN(Matrix q, linear(prefix + "wq_b", latent));
    MAXPORT_ASSIGN_OR_RETURN(Matrix k, linear(prefix + "wk", h));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix weights, linear(prefix + "weights_proj", h));
    MAXPORT_RETURN_IF_ERROR(check_shape(prefix + " (wq_b, wk, weights_proj)", {q.cols, k.cols, weights.cols},
                                        {indexer_.heads * indexer_.head_dim, indexer_.head_dim, indexer_.heads}));
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<float> weight, vector(prefix + "k_norm.weight"));
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<float> bias, vector(prefix + "k_norm.bias"));
    MAXPORT_RETURN_IF_ERROR(check_shape(
        prefix + "k_norm", {static_cast<int64_t>(weight.size()), static_cast<int64_t>(bias.size())}, {k.cols, k.cols}));
    layer_norm(k, weight, bias, kInnerEpsilon);
    Rotary halves = rotary_;
    halves.pairing = Pairing::kHalves;
    return select_keys(std::move(q), std::move(k), weights, batch, halves, indexer_);
  }

  bool second_version_ = false, low_rank_ = false, normalize_ = true;
  int64_t kv_rank_ = 0, dense_layers_ = 0;
  float scaling_ = 1;
  LatentAttention latent_;
  GroupedRouting routing_;
  Indexer indexer_;
  Rotary rotary_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> huggingface_deepseek(HuggingfaceModel model) {
  HuggingfaceTraits traits;
  MAXPORT_ASSIGN_OR_RETURN(traits.bias_qkv, model.config->boolean_or("attention_bias", false));
  traits.bias_out = traits.bias_qkv;
  if (model.config->section_model_type() == "deepseek_v2") {
    MAXPORT_ASSIGN_OR_RETURN(traits.bias_mlp, model.config->boolean_or("mlp_bias", false));
  }
  return make_huggingface<DeepseekDecoder>(std::move(model), traits);
}

}  // namespace maxport::forward
