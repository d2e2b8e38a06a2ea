#include "forward/maxtext/decoder.h"

#include <cmath>

#include "forward/matmul.h"
#include "forward/maxtext/rotary_settings.h"

namespace maxport::forward {
namespace {

/// A setting that MaxText leaves at null, 0 or 0.0 when it is off.
Result<double> number_or_zero(const maxtext::Settings& settings, std::string_view key) {
  const maxtext::Setting* found = settings.find(key);
  if (found == nullptr || found->value.is_null()) return 0.0;
  return settings.number(key);
}

}  // namespace

MaxtextDecoder::MaxtextDecoder(MaxtextModel model, MaxtextTraits traits)
    : model_(std::move(model)), traits_(traits), weights_(*model_.weights), settings_(*model_.settings) {}

Result<> MaxtextDecoder::read_sizes() {
  MAXPORT_ASSIGN_OR_RETURN(layers_, settings_.integer("base_num_decoder_layers"));
  MAXPORT_ASSIGN_OR_RETURN(width_, settings_.integer("base_emb_dim"));
  MAXPORT_ASSIGN_OR_RETURN(heads_, settings_.integer("base_num_query_heads"));
  MAXPORT_ASSIGN_OR_RETURN(kv_heads_, settings_.integer("base_num_kv_heads"));
  MAXPORT_ASSIGN_OR_RETURN(head_dim_, settings_.integer("head_dim"));
  MAXPORT_ASSIGN_OR_RETURN(scan_axis_, settings_.integer("param_scan_axis"));
  if (scan_axis_ != 0 && scan_axis_ != 1)
    return fail(ErrorKind::kInvalidArgument, "param_scan_axis is {}; layers are stacked on axis 0 or 1", scan_axis_);
  if (layers_ < 1 || width_ < 1 || heads_ < 1 || kv_heads_ < 1 || head_dim_ < 1 || heads_ % kv_heads_ != 0)
    return fail(ErrorKind::kInvalidArgument,
                "no model has {} layers of width {} with {} query heads and {} key heads of {}; the settings are wrong",
                layers_, width_, heads_, kv_heads_, head_dim_);
  return {};
}

Result<> MaxtextDecoder::read_activation() {
  const maxtext::Setting* names = settings_.find("mlp_activations");
  if (names == nullptr || !names->value.is_array() || names->value.size() != 2 || names->value[1] != "linear" ||
      !names->value[0].is_string())
    return fail(ErrorKind::kUnsupported, "mlp_activations must be [..., linear], a gated network; it is {}",
                names == nullptr ? "absent" : printable(names->value.dump()));
  MAXPORT_ASSIGN_OR_RETURN(activation_, activation_of(names->value[0].get<std::string>(), true));
  return {};
}

Result<> MaxtextDecoder::prepare() {
  MAXPORT_RETURN_IF_ERROR(read_sizes());
  MAXPORT_RETURN_IF_ERROR(read_activation());
  MAXPORT_ASSIGN_OR_RETURN(const double window, number_or_zero(settings_, "sliding_window_size"));
  window_ = static_cast<int64_t>(window);
  MAXPORT_ASSIGN_OR_RETURN(epsilon_, settings_.number("normalization_layer_epsilon"));
  MAXPORT_ASSIGN_OR_RETURN(score_cap_, number_or_zero(settings_, "attn_logits_soft_cap"));
  MAXPORT_ASSIGN_OR_RETURN(logit_cap_, number_or_zero(settings_, "final_logits_soft_cap"));
  MAXPORT_ASSIGN_OR_RETURN(tied_, settings_.boolean("logits_via_embedding"));
  MAXPORT_ASSIGN_OR_RETURN(normalized_logits_, settings_.boolean("normalize_embedding_logits"));
  for (const char* fused : {"fused_qkv", "fused_mlp"}) {
    MAXPORT_ASSIGN_OR_RETURN(const bool on, settings_.boolean(fused));
    if (on) return fail(ErrorKind::kUnsupported, "a forward pass needs separate projections, but {} is true", fused);
  }
  MAXPORT_ASSIGN_OR_RETURN(global_rotary_, maxtext_rotary(settings_, {.head_dim = head_dim_}));
  MAXPORT_ASSIGN_OR_RETURN(local_rotary_, maxtext_rotary(settings_, {.head_dim = head_dim_, .local = true}));
  MAXPORT_RETURN_IF_ERROR(check_fits(global_rotary_, head_dim_));
  MAXPORT_RETURN_IF_ERROR(check_fits(local_rotary_, head_dim_));
  return {};
}

std::string MaxtextDecoder::description() const {
  return fmt::format("MaxText {}, {}", settings_.text("decoder_block").value_or("?"),
                     model_.scanned ? "scanned" : "unscanned");
}

LayerPlace MaxtextDecoder::place(int64_t index) const {
  if (!model_.scanned) return {fmt::format("decoder.layers_{}", index)};
  if (traits_.block == 1) return {"decoder.layers", {index}};
  // Whole blocks are stacked; what is left over stands beside them.
  const int64_t inside = index % traits_.block;
  if (index < layers_ / traits_.block * traits_.block)
    return {fmt::format("decoder.layers.layers_{}", inside), {index / traits_.block}};
  return {fmt::format("decoder.layers_remainder.layers_{}", inside)};
}

Result<Tensor> MaxtextDecoder::parameter(const LayerPlace& place, std::string_view name) const {
  const std::string full = place.prefix + "." + std::string(name);
  MAXPORT_ASSIGN_OR_RETURN(const Shape all, weights_.shape(full));
  Box box = Box::whole(all);
  const auto first = static_cast<size_t>(scan_axis_);
  if (!place.indices.empty() && all.size() < first + place.indices.size())
    return fail(ErrorKind::kInvalidArgument, "{}: layers are stacked from axis {} on, but its shape is {}", full,
                scan_axis_, shape_text(all));
  for (size_t i = 0; i < place.indices.size(); ++i) {
    if (place.indices[i] >= all[first + i])
      return fail(ErrorKind::kInvalidArgument,
                  "{}: its shape {} has no layer {} on axis {}; the settings have {} layers", full, shape_text(all),
                  place.indices[i], first + i, layers_);
    box.origin[first + i] = place.indices[i];
    box.shape[first + i] = 1;
  }
  MAXPORT_ASSIGN_OR_RETURN(Tensor out, weights_.part(full, box));
  const auto begin = out.shape.begin() + scan_axis_;
  if (!place.indices.empty()) out.shape.erase(begin, begin + static_cast<int64_t>(place.indices.size()));
  return out;
}

Result<Matrix> MaxtextDecoder::dense(const LayerPlace& place, const std::string& name, const Matrix& h, int inputs,
                                     bool bias) const {
  MAXPORT_ASSIGN_OR_RETURN(const Tensor kernel, parameter(place, name + ".kernel"));
  const auto split = std::min(kernel.shape.size(), static_cast<size_t>(inputs));
  const int64_t rows = element_count(std::span(kernel.shape).first(split));
  const int64_t outputs = element_count(std::span(kernel.shape).subspan(split));
  MAXPORT_RETURN_IF_ERROR(check_shape(name, {rows}, {h.cols}));
  Matrix out(h.rows, outputs);
  multiply(view(out), view(h), {kernel.data.data(), rows, outputs, outputs});
  if (!bias) return out;
  MAXPORT_ASSIGN_OR_RETURN(const Tensor add, parameter(place, name + ".bias"));
  MAXPORT_RETURN_IF_ERROR(check_shape(name + ".bias", {add.size()}, {outputs}));
  add_bias(out, add.data);
  return out;
}

Result<Matrix> MaxtextDecoder::gated_mlp(const LayerPlace& place, const std::string& name, const Matrix& h) const {
  MAXPORT_ASSIGN_OR_RETURN(Matrix gate, dense(place, name + ".wi_0", h));
  activate(activation_, gate);
  MAXPORT_ASSIGN_OR_RETURN(const Matrix up, dense(place, name + ".wi_1", h));
  MAXPORT_RETURN_IF_ERROR(check_shape(name + ".wi_1", {up.cols}, {gate.cols}));
  multiply_elements(gate, up);
  return dense(place, name + ".wo", gate);
}

Result<> MaxtextDecoder::norm(const LayerPlace& place, const std::string& name, Matrix& x,
                              std::optional<double> epsilon) const {
  MAXPORT_ASSIGN_OR_RETURN(const Tensor scale, parameter(place, name + ".scale"));
  if (scale.data.empty() || x.cols % scale.size() != 0) return check_shape(name + ".scale", scale.shape, {x.cols});
  rms_norm(x, scale.data, epsilon.value_or(traits_.layer_norm_epsilon.value_or(epsilon_)), traits_.norm_offset);
  return {};
}

Result<Matrix> MaxtextDecoder::embed(const Batch& batch) {
  MAXPORT_ASSIGN_OR_RETURN(Matrix x, weights_.rows("token_embedder.embedding", batch.ids));
  MAXPORT_RETURN_IF_ERROR(check_shape("token_embedder.embedding", {x.cols}, {width_}));
  return x;
}

Result<> MaxtextDecoder::layer(int64_t index, const Batch& batch, Matrix& x) {
  const LayerPlace here = place(index);
  const auto half = [&](std::string_view before, std::string_view after, auto step) -> Result<> {
    Matrix h = x;
    if (!before.empty()) MAXPORT_RETURN_IF_ERROR(norm(here, std::string(before), h));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, step(std::move(h)));
    if (!after.empty()) MAXPORT_RETURN_IF_ERROR(norm(here, std::string(after), out));
    MAXPORT_RETURN_IF_ERROR(check_shape(here.prefix, {out.cols}, {x.cols}));
    add(x, out);
    return {};
  };
  MAXPORT_RETURN_IF_ERROR(half(traits_.norm_before_attention, traits_.norm_after_attention,
                               [&](Matrix h) { return attention(index, batch, std::move(h)); }));
  return half(traits_.norm_before_mlp, traits_.norm_after_mlp,
              [&](Matrix h) { return feed_forward(index, std::move(h)); });
}

Result<Matrix> MaxtextDecoder::attention(int64_t index, const Batch& batch, Matrix h) {
  const LayerPlace here = place(index);
  const std::string name(traits_.attention);
  MAXPORT_ASSIGN_OR_RETURN(Matrix q, dense(here, name + ".query", h, 1, traits_.bias_qkv));
  MAXPORT_ASSIGN_OR_RETURN(Matrix k, dense(here, name + ".key", h, 1, traits_.bias_qkv));
  MAXPORT_ASSIGN_OR_RETURN(const Matrix v, dense(here, name + ".value", h, 1, traits_.bias_qkv));
  MAXPORT_RETURN_IF_ERROR(check_shape(name + " (query, key, value)", {q.cols, k.cols, v.cols},
                                      {heads_ * head_dim_, kv_heads_ * head_dim_, kv_heads_ * head_dim_}));
  if (traits_.query_norm) {
    MAXPORT_RETURN_IF_ERROR(norm(here, name + ".query_norm", q, epsilon_));
    MAXPORT_RETURN_IF_ERROR(norm(here, name + ".key_norm", k, epsilon_));
  }
  const bool local = is_local(index);
  apply_rotary(q, head_dim_, batch.positions, local ? local_rotary_ : global_rotary_);
  apply_rotary(k, head_dim_, batch.positions, local ? local_rotary_ : global_rotary_);
  scale(q, static_cast<float>(traits_.query_scale));
  AttentionOptions options{heads_, kv_heads_, head_dim_, head_dim_, 1, score_cap_};
  if (local) options.window = window_;
  Tensor sinks;
  MAXPORT_ASSIGN_OR_RETURN(const bool has_sinks, settings_.boolean("attention_sink"));
  if (has_sinks) {
    MAXPORT_ASSIGN_OR_RETURN(sinks, parameter(here, name + ".sinks"));
    MAXPORT_RETURN_IF_ERROR(check_shape(name + ".sinks", sinks.shape, {heads_}));
    options.sinks = sinks.data;
  }
  return dense(here, name + ".out", attend(q, k, v, batch, options), 2, traits_.bias_out);
}

Result<Matrix> MaxtextDecoder::feed_forward(int64_t index, Matrix h) {
  return gated_mlp(place(index), std::string(traits_.mlp), h);
}

Result<Matrix> MaxtextDecoder::head(Matrix x) {
  MAXPORT_RETURN_IF_ERROR(norm({"decoder"}, "decoder_norm", x, epsilon_));
  if (!tied_) return multiply_by_columns(weights_, "decoder.logits_dense.kernel", x);
  MAXPORT_ASSIGN_OR_RETURN(Matrix logits, multiply_by_rows(weights_, "token_embedder.embedding", x,
                                                           model_.round_tied_table ? round_to_bfloat16 : nullptr));
  if (normalized_logits_) scale(logits, static_cast<float>(1 / std::sqrt(static_cast<double>(width_))));
  soft_cap(logits, logit_cap_);
  return logits;
}

}  // namespace maxport::forward
