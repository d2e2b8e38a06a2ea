// DeepSeek's decoder block in MaxText: models/deepseek.py, layers/attention_mla.py, and its routing in layers/moe.py.
#include <cmath>

#include "forward/grouped_routing.h"
#include "forward/latent_attention.h"
#include "forward/maxtext/families.h"
#include "forward/maxtext/rotary_settings.h"
#include "forward/maxtext/routed_experts.h"

namespace maxport::forward {
namespace {

constexpr double kIndexerEpsilon = 1e-6;  // of flax's LayerNorm

class DeepseekDecoder : public MaxtextRoutedDecoder {
 public:
  using MaxtextRoutedDecoder::MaxtextRoutedDecoder;

  Result<> prepare() override {
    MAXPORT_RETURN_IF_ERROR(MaxtextRoutedDecoder::prepare());
    MAXPORT_RETURN_IF_ERROR(refuse_extensions());
    MAXPORT_ASSIGN_OR_RETURN(dense_layers_, settings_.integer("first_num_dense_layers"));
    MAXPORT_RETURN_IF_ERROR(read_attention());
    MAXPORT_RETURN_IF_ERROR(read_routing());
    MAXPORT_ASSIGN_OR_RETURN(const bool indexed, settings_.boolean("use_indexer"));
    return indexed ? read_indexer() : Result<>();
  }

 protected:
  /// Dense layers and those with experts are numbered, or stacked, each on their own.
  LayerPlace place(int64_t index) const override {
    const bool dense = index < dense_layers_;
    const std::string name = dense ? "decoder.dense_layers" : "decoder.moe_layers";
    const int64_t inside = dense ? index : index - dense_layers_;
    if (model_.scanned) return {name, {inside}};
    return {fmt::format("{}_{}", name, inside)};
  }

  Result<Matrix> attention(int64_t index, const Batch& batch, Matrix h) override {
    const LayerPlace here = place(index);
    Matrix latent;
    if (q_rank_ > 0) {
      MAXPORT_ASSIGN_OR_RETURN(latent, dense(here, "self_attention.wq_a", h));
      MAXPORT_RETURN_IF_ERROR(norm(here, "self_attention.q_norm", latent));
    }
    MAXPORT_ASSIGN_OR_RETURN(
        Matrix q, q_rank_ > 0 ? dense(here, "self_attention.wq_b", latent) : dense(here, "self_attention.query", h));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix both, dense(here, "self_attention.wkv_a", h));
    MAXPORT_RETURN_IF_ERROR(check_shape("self_attention.wkv_a", {both.cols}, {kv_rank_ + latent_.rope_dim}));
    Matrix compressed = columns(both, 0, kv_rank_);
    MAXPORT_RETURN_IF_ERROR(norm(here, "self_attention.kv_norm", compressed));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix kv, dense(here, "self_attention.wkv_b", compressed));
    MAXPORT_RETURN_IF_ERROR(
        check_shape("self_attention (wkv_b and queries)", {kv.cols, q.cols},
                    {heads_ * (latent_.nope_dim + latent_.value_dim), heads_ * (latent_.nope_dim + latent_.rope_dim)}));
    HiddenKeys hidden;
    if (indexer_.count > 0) {
      MAXPORT_ASSIGN_OR_RETURN(hidden, indexed(here, batch, h, latent));
    }
    const Matrix out = attend_latent(std::move(q), kv, columns(both, kv_rank_, latent_.rope_dim), batch, rotary_,
                                     latent_, std::move(hidden));
    return dense(here, "self_attention.out", out, 2);
  }

  Result<Matrix> feed_forward(int64_t index, Matrix h) override {
    const LayerPlace here = place(index);
    if (index < dense_layers_) return gated_mlp(here, "mlp", h);
    const std::string name = "DeepSeekMoeBlock_0.MoeBlock_0";
    MAXPORT_ASSIGN_OR_RETURN(const Choices choices, choose(here, name, h));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, experts(here, name, h, choices));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix shared, gated_mlp(here, "DeepSeekMoeBlock_0.shared_experts", h));
    add(out, shared);
    return out;
  }

 private:
  Result<> refuse_extensions() const {
    MAXPORT_ASSIGN_OR_RETURN(const std::string type, settings_.text("attention_type"));
    MAXPORT_ASSIGN_OR_RETURN(const int64_t streams, settings_.integer("mhc_expansion_rate"));
    const maxtext::Setting* engram = settings_.find("engram_layers");
    const bool has_engram = engram != nullptr && engram->value.is_array() && !engram->value.empty();
    if (type != "mla" || streams > 1 || has_engram || activation_limit_ > 0)
      return fail(ErrorKind::kUnsupported,
                  "no forward pass for deepseek with attention_type {}, mhc_expansion_rate {}, engram layers or "
                  "mlp_activations_limit {}; plain are mla, 1, none and -1",
                  printable(type), streams, activation_limit_);
    return {};
  }

  Result<> read_attention() {
    MAXPORT_ASSIGN_OR_RETURN(q_rank_, settings_.integer("q_lora_rank"));
    MAXPORT_ASSIGN_OR_RETURN(kv_rank_, settings_.integer("kv_lora_rank"));
    latent_.heads = heads_;
    latent_.soft_cap = score_cap_;
    MAXPORT_ASSIGN_OR_RETURN(latent_.nope_dim, settings_.integer("qk_nope_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(latent_.rope_dim, settings_.integer("qk_rope_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(latent_.value_dim, settings_.integer("v_head_dim"));
    if (kv_rank_ < 1 || latent_.nope_dim < 1 || latent_.rope_dim < 1 || latent_.value_dim < 1)
      return fail(ErrorKind::kInvalidArgument,
                  "latent attention needs positive kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim");
    MAXPORT_ASSIGN_OR_RETURN(rotary_, maxtext_rotary(settings_, {.head_dim = latent_.rope_dim}));
    latent_.scale = 1 / std::sqrt(static_cast<double>(latent_.nope_dim + latent_.rope_dim));
    MAXPORT_ASSIGN_OR_RETURN(const double length, settings_.number("max_position_embeddings"));
    MAXPORT_ASSIGN_OR_RETURN(const double original_length, settings_.number("original_max_position_embeddings"));
    if (length > original_length) {
      MAXPORT_ASSIGN_OR_RETURN(const double mscale, settings_.number("mscale"));
      MAXPORT_ASSIGN_OR_RETURN(const double factor, settings_.number("rope_factor"));
      latent_.scale *= std::pow(0.1 * mscale * std::log(factor) + 1, 2);
    }
    return {};
  }

  Result<> read_routing() {
    // MaxText asks for the model's name, not for a setting.
    const std::string name = settings_.model_name().value_or("default");
    ranks_with_bias_ = name.starts_with("deepseek3") || name.starts_with("deepseek4") || name.starts_with("kimi-k2");
    MAXPORT_ASSIGN_OR_RETURN(score_, settings_.text("routed_score_func"));
    if (score_ != "softmax" && score_ != "sigmoid" && !score_.empty())
      return fail(ErrorKind::kUnsupported, "no forward pass knows routed_score_func {}; known are softmax and sigmoid",
                  printable(score_));
    MAXPORT_ASSIGN_OR_RETURN(const double scaling, settings_.number("routed_scaling_factor"));
    scaling_ = static_cast<float>(scaling);
    routing_ = {.count = chosen_, .best_two = true};
    MAXPORT_ASSIGN_OR_RETURN(const int64_t groups, settings_.integer("n_routing_groups"));
    if (groups == -1 || !ranks_with_bias_) {
      routing_.best_two = false;
    } else {
      routing_.groups = groups;
      MAXPORT_ASSIGN_OR_RETURN(routing_.kept_groups, settings_.integer("topk_routing_group"));
    }
    return check_grouped_routing(routing_, count_);
  }

  Result<> read_indexer() {
    MAXPORT_ASSIGN_OR_RETURN(indexer_.heads, settings_.integer("indexer_n_heads"));
    MAXPORT_ASSIGN_OR_RETURN(indexer_.head_dim, settings_.integer("indexer_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(indexer_.count, settings_.integer("indexer_topk"));
    MAXPORT_ASSIGN_OR_RETURN(const bool exact, settings_.boolean("indexer_mask_exact_topk"));
    indexer_.keep_ties = !exact;
    if (q_rank_ < 1 || indexer_.heads < 1 || indexer_.count < 1 || indexer_.head_dim < latent_.rope_dim)
      return fail(ErrorKind::kInvalidArgument,
                  "an indexer needs q_lora_rank, heads, keys to choose and heads of at least {} elements; the settings "
                  "are wrong",
                  latent_.rope_dim);
    return {};
  }

  Result<Choices> choose(const LayerPlace& here, const std::string& name, const Matrix& h) const {
    MAXPORT_ASSIGN_OR_RETURN(Matrix scores, gate(here, name, h, false));
    if (score_ == "softmax") softmax_rows(scores);
    if (score_ == "sigmoid")
      for (float& score : scores.data) score = sigmoid(score);
    Matrix ranking = scores;
    if (routed_bias_) {
      MAXPORT_ASSIGN_OR_RETURN(const Tensor bias, gate_bias(here, name));
      MAXPORT_RETURN_IF_ERROR(check_shape(name + ".gate.bias", bias.shape, {count_}));
      add_bias(ranking, bias.data);
    }
    Choices choices = choose_within_groups(ranking, ranks_with_bias_ ? scores : ranking, routing_);
    if (score_ == "sigmoid") normalize_choices(choices, 1e-20f);
    scale_choices(choices, scaling_);
    return choices;
  }

  /// A variable of its own kind, whose layers are stacked on axis 0 whatever the scan axis of parameters is.
  Result<Tensor> gate_bias(const LayerPlace& here, const std::string& name) const {
    const std::string full = here.prefix + "." + name + ".gate.bias";
    if (!ranks_with_bias_) return parameter(here, name + ".gate.bias");
    return here.indices.empty() ? weights_.tensor(full) : weights_.slice(full, 0, here.indices[0]);
  }

  Result<HiddenKeys> indexed(const LayerPlace& here, const Batch& batch, const Matrix& h, const Matrix& latent) const {
    const std::string name = "self_attention.indexer.";
    MAXPORT_ASSIGN_OR_RETURN(Matrix q, dense(here, name + "wq_b", latent));
    MAXPORT_ASSIGN_OR_RETURN(Matrix k, dense(here, name + "wk", h));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix weights, dense(here, name + "weights_proj", h));
    MAXPORT_RETURN_IF_ERROR(check_shape(name + " (wq_b, wk, weights_proj)", {q.cols, k.cols, weights.cols},
                                        {indexer_.heads * indexer_.head_dim, indexer_.head_dim, indexer_.heads}));
    MAXPORT_ASSIGN_OR_RETURN(const Tensor weight, parameter(here, name + "k_norm.scale"));
    MAXPORT_ASSIGN_OR_RETURN(const Tensor bias, parameter(here, name + "k_norm.bias"));
    MAXPORT_RETURN_IF_ERROR(check_shape(name + "k_norm", {weight.size(), bias.size()}, {k.cols, k.cols}));
    layer_norm(k, weight.data, bias.data, kIndexerEpsilon);
    // Its heads hold the turning elements first, and as halves.
    Rotary halves = rotary_;
    halves.pairing = Pairing::kHalves;
    return select_keys(std::move(q), std::move(k), weights, batch, halves, indexer_);
  }

  int64_t dense_layers_ = 0, q_rank_ = 0, kv_rank_ = 0;
  bool ranks_with_bias_ = false;
  std::string score_;
  float scaling_ = 1;
  LatentAttention latent_;
  GroupedRouting routing_;
  Indexer indexer_;
  Rotary rotary_;
};

}  // namespace

Result<std::unique_ptr<Decoder>> maxtext_deepseek(MaxtextModel model) {
  return make_maxtext<DeepseekDecoder>(std::move(model), {});
}

}  // namespace maxport::forward
