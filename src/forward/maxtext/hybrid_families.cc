// Decoder blocks of MaxText whose layers take turns between linear and full attention: Qwen3-Next (models/qwen3.py) and
// Qwen3.5 (models/qwen3_5.py), which shares its layers but not the way they are scanned.
#include <array>
#include <cmath>

#include "forward/delta_net.h"
#include "forward/maxtext/families.h"
#include "forward/maxtext/rotary_settings.h"
#include "forward/maxtext/routed_experts.h"

namespace maxport::forward {
namespace {

class MaxtextHybridDecoder : public MaxtextRoutedDecoder {
 public:
  using MaxtextRoutedDecoder::MaxtextRoutedDecoder;

  Result<> prepare() override {
    MAXPORT_RETURN_IF_ERROR(MaxtextRoutedDecoder::prepare());
    MAXPORT_ASSIGN_OR_RETURN(global_rotary_, maxtext_rotary(settings_, {.head_dim = head_dim_, .hybrid = true}));
    MAXPORT_RETURN_IF_ERROR(check_fits(global_rotary_, head_dim_));
    MAXPORT_ASSIGN_OR_RETURN(shape_.key_heads, settings_.integer("gdn_num_key_heads"));
    MAXPORT_ASSIGN_OR_RETURN(shape_.value_heads, settings_.integer("gdn_num_value_heads"));
    MAXPORT_ASSIGN_OR_RETURN(shape_.key_dim, settings_.integer("gdn_key_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(shape_.value_dim, settings_.integer("gdn_value_head_dim"));
    MAXPORT_ASSIGN_OR_RETURN(shape_.taps, settings_.integer("gdn_conv_kernel_dim"));
    MAXPORT_ASSIGN_OR_RETURN(normalize_keys_, settings_.boolean("use_qk_norm_in_gdn"));
    MAXPORT_ASSIGN_OR_RETURN(const int64_t shared, settings_.integer("shared_experts"));
    shared_ = shared > 0;
    MAXPORT_ASSIGN_OR_RETURN(const std::string block, settings_.text("decoder_block"));
    nested_ = block == "qwen3_next";
    if (shape_.key_dim < 1 || shape_.value_dim < 1 || shape_.taps < 1 || shape_.value_heads < 1)
      return fail(ErrorKind::kInvalidArgument, "linear attention needs heads, keys, values and taps of at least 1");
    if (shape_.key_heads < 1 || shape_.value_heads % shape_.key_heads != 0)
      return fail(ErrorKind::kInvalidArgument, "{} value heads cannot share {} key heads", shape_.value_heads,
                  shape_.key_heads);
    return {};
  }

 protected:
  LayerPlace place(int64_t index) const override {
    if (!model_.scanned) return {fmt::format("decoder.layers_{}", index)};
    const int64_t period = traits_.block, block = index / period, inside = index % period;
    if (!nested_) return {fmt::format("decoder.layers.layer_{}", inside), {block}};
    // The linear layers of a block are a stack of their own within the stack of blocks.
    if (block == layers_ / period) return {"decoder.layers_remainder.local_layers", {inside}};
    if (is_full(index)) return {"decoder.layers.global_layer", {block}};
    return {"decoder.layers.local_layers", {block, inside}};
  }

  Result<Matrix> attention(int64_t index, const Batch& batch, Matrix h) override {
    return is_full(index) ? gated_attention(place(index), batch, h) : linear_attention(place(index), batch, h);
  }

  Result<Matrix> feed_forward(int64_t index, Matrix h) override {
    const LayerPlace here = place(index);
    MAXPORT_ASSIGN_OR_RETURN(const Matrix logits, gate(here, "mlp.routed_experts", h, false));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, experts(here, "mlp.routed_experts", h, top_then_softmax(logits, chosen_)));
    if (!shared_) return out;
    MAXPORT_ASSIGN_OR_RETURN(const Matrix share, dense(here, "mlp.shared_expert_gate", h));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix shared, gated_mlp(here, "mlp.shared_expert", h));
    for (int64_t r = 0; r < out.rows; ++r)
      for (int64_t c = 0; c < out.cols; ++c) out.row(r)[c] += sigmoid(share.row(r)[0]) * shared.row(r)[c];
    return out;
  }

 private:
  bool is_full(int64_t index) const { return index % traits_.block == traits_.block - 1; }

  Result<Matrix> gated_attention(const LayerPlace& here, const Batch& batch, const Matrix& h) {
    const std::string name = "attention.attention";
    MAXPORT_ASSIGN_OR_RETURN(const Matrix both, dense(here, name + ".query", h));
    MAXPORT_ASSIGN_OR_RETURN(Matrix k, dense(here, name + ".key", h));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix v, dense(here, name + ".value", h));
    MAXPORT_RETURN_IF_ERROR(check_shape(name + " (query, key, value)", {both.cols, k.cols, v.cols},
                                        {2 * heads_ * head_dim_, kv_heads_ * head_dim_, kv_heads_ * head_dim_}));
    std::vector<Matrix> parts = split_groups(both, heads_, std::array{head_dim_, head_dim_});
    Matrix& q = parts[0];
    MAXPORT_RETURN_IF_ERROR(norm(here, name + ".query_norm", q, epsilon_));
    MAXPORT_RETURN_IF_ERROR(norm(here, name + ".key_norm", k, epsilon_));
    apply_rotary(q, head_dim_, batch.positions, global_rotary_);
    apply_rotary(k, head_dim_, batch.positions, global_rotary_);
    scale(q, static_cast<float>(traits_.query_scale));
    Matrix out = attend(q, k, v, batch, {heads_, kv_heads_, head_dim_, head_dim_});
    for (size_t i = 0; i < out.data.size(); ++i) out.data[i] *= sigmoid(parts[1].data[i]);
    return dense(here, name + ".out", out);
  }

  Result<DeltaNetInputs> project(const LayerPlace& here, const Matrix& h) {
    const int64_t group = shape_.value_heads / shape_.key_heads, values = group * shape_.value_dim;
    MAXPORT_ASSIGN_OR_RETURN(const Matrix qkvz, dense(here, "attention.in_proj_qkvz", h));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix ba, dense(here, "attention.in_proj_ba", h));
    MAXPORT_RETURN_IF_ERROR(check_shape("attention.in_proj_qkvz, in_proj_ba", {qkvz.cols, ba.cols},
                                        {shape_.channels() + shape_.values(), 2 * shape_.value_heads}));
    auto parts = split_groups(qkvz, shape_.key_heads, std::array{shape_.key_dim, shape_.key_dim, values, values});
    auto rates = split_groups(ba, shape_.key_heads, std::array{group, group});
    DeltaNetInputs in{Matrix(h.rows, shape_.channels()), std::move(parts[3]), std::move(rates[0]), std::move(rates[1])};
    for (int64_t r = 0; r < h.rows; ++r) {
      float* target = in.qkv.row(r);
      for (size_t part = 0; part < 3; ++part) target = std::copy_n(parts[part].row(r), parts[part].cols, target);
    }
    return in;
  }

  Result<Matrix> linear_attention(const LayerPlace& here, const Batch& batch, const Matrix& h) {
    MAXPORT_ASSIGN_OR_RETURN(DeltaNetInputs inputs, project(here, h));
    MAXPORT_ASSIGN_OR_RETURN(const Tensor kernel, parameter(here, "attention.conv1d.kernel"));
    MAXPORT_RETURN_IF_ERROR(check_shape("attention.conv1d.kernel", kernel.shape, {shape_.taps, 1, shape_.channels()}));
    MAXPORT_ASSIGN_OR_RETURN(Tensor decay, parameter(here, "attention.A_log"));
    MAXPORT_ASSIGN_OR_RETURN(Tensor bias, parameter(here, "attention.dt_bias"));
    MAXPORT_ASSIGN_OR_RETURN(Tensor scale, parameter(here, "attention.norm.rms_norm.scale"));
    MAXPORT_RETURN_IF_ERROR(check_shape("attention.A_log, dt_bias, norm", {decay.size(), bias.size(), scale.size()},
                                        {shape_.value_heads, shape_.value_heads, shape_.value_dim}));
    DeltaNetWeights weights{std::vector<float>(kernel.data.size()),
                            std::move(decay.data),
                            std::move(bias.data),
                            std::move(scale.data),
                            epsilon_,
                            normalize_keys_};
    for (int64_t tap = 0; tap < shape_.taps; ++tap)
      for (int64_t c = 0; c < shape_.channels(); ++c)
        weights.convolution[static_cast<size_t>(c * shape_.taps + tap)] =
            kernel.data[static_cast<size_t>(tap * shape_.channels() + c)];
    return dense(here, "attention.out_proj", gated_delta_net(std::move(inputs), weights, shape_, batch));
  }

  DeltaNetShape shape_;
  bool normalize_keys_ = true, shared_ = false, nested_ = false;
};

}  // namespace

Result<std::unique_ptr<Decoder>> maxtext_qwen3_hybrid(MaxtextModel model) {
  MaxtextTraits traits;
  traits.norm_before_attention = "input_layernorm";
  traits.norm_before_mlp = "post_attention_layernorm";
  traits.norm_offset = 1;
  MAXPORT_ASSIGN_OR_RETURN(const double head_dim, model.settings->number("head_dim"));
  traits.query_scale = 1 / std::sqrt(head_dim);
  MAXPORT_ASSIGN_OR_RETURN(traits.block, model.settings->integer("inhomogeneous_layer_cycle_interval"));
  if (traits.block < 1)
    return fail(ErrorKind::kInvalidArgument, "inhomogeneous_layer_cycle_interval must be at least 1");
  return make_maxtext<MaxtextHybridDecoder>(std::move(model), traits);
}

}  // namespace maxport::forward
