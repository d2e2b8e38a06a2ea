#include "forward/maxtext/routed_experts.h"

#include "forward/matmul.h"

namespace maxport::forward {

Result<> MaxtextRoutedDecoder::prepare() {
  MAXPORT_RETURN_IF_ERROR(MaxtextDecoder::prepare());
  MAXPORT_ASSIGN_OR_RETURN(count_, settings_.integer("num_experts"));
  MAXPORT_ASSIGN_OR_RETURN(chosen_, settings_.integer("num_experts_per_tok"));
  if (chosen_ < 1 || chosen_ > count_)
    return fail(ErrorKind::kInvalidArgument, "a token cannot choose {} of {} experts; the settings are wrong", chosen_,
                count_);
  MAXPORT_ASSIGN_OR_RETURN(bias_experts_, settings_.boolean("mlp_bias"));
  MAXPORT_ASSIGN_OR_RETURN(routed_bias_, settings_.boolean("routed_bias"));
  MAXPORT_ASSIGN_OR_RETURN(activation_limit_, settings_.number("mlp_activations_limit"));
  MAXPORT_ASSIGN_OR_RETURN(const bool fused, settings_.boolean("prefuse_moe_weights"));
  if (fused)
    return fail(ErrorKind::kUnsupported, "a forward pass needs separate projections, but prefuse_moe_weights is true");
  return {};
}

Result<Matrix> MaxtextRoutedDecoder::gate(const LayerPlace& place, const std::string& name, const Matrix& h,
                                          bool bias) const {
  MAXPORT_ASSIGN_OR_RETURN(Matrix logits, dense(place, name + ".gate", h, 1, bias));
  MAXPORT_RETURN_IF_ERROR(check_shape(name + ".gate", {logits.cols}, {count_}));
  return logits;
}

Result<Tensor> MaxtextRoutedDecoder::expert_parameter(const LayerPlace& place, const std::string& name,
                                                      int64_t expert) const {
  const std::string full = place.prefix + "." + name;
  MAXPORT_ASSIGN_OR_RETURN(const Shape all, weights_.shape(full));
  // The experts are the first axis, of which the stacked layers are none.
  const auto first = static_cast<size_t>(scan_axis_), stacked = place.indices.size();
  const size_t axis = first == 0 ? stacked : 0;
  const auto wrong = [&] {
    return fail(ErrorKind::kInvalidArgument, "{}: its shape {} has no expert {} of the layer that the settings ask for",
                full, shape_text(all), expert);
  };
  if (all.size() < std::max(first + stacked, axis + 1) || expert >= all[axis]) return wrong();
  Box box = Box::whole(all);
  const auto take = [&](size_t a, int64_t index) {
    box.origin[a] = index;
    box.shape[a] = 1;
  };
  take(axis, expert);
  for (size_t i = 0; i < stacked; ++i) {
    if (place.indices[i] >= all[first + i]) return wrong();
    take(first + i, place.indices[i]);
  }
  MAXPORT_ASSIGN_OR_RETURN(Tensor out, weights_.part(full, box));
  Shape rest;
  for (size_t a = 0; a < all.size(); ++a)
    if (a != axis && (a < first || a >= first + stacked)) rest.push_back(out.shape[a]);
  out.shape = rest;
  return out;
}

Result<Matrix> MaxtextRoutedDecoder::expert_product(const LayerPlace& place, const std::string& name, int64_t expert,
                                                    const Matrix& rows) const {
  MAXPORT_ASSIGN_OR_RETURN(const Tensor kernel, expert_parameter(place, name, expert));
  MAXPORT_RETURN_IF_ERROR(check_shape(name, kernel.shape, {rows.cols, -1}));
  Matrix out(rows.rows, kernel.shape[1]);
  multiply(view(out), view(rows), {kernel.data.data(), rows.cols, out.cols, out.cols});
  if (!bias_experts_) return out;
  MAXPORT_ASSIGN_OR_RETURN(const Tensor bias, expert_parameter(place, name + "_bias", expert));
  MAXPORT_RETURN_IF_ERROR(check_shape(name + "_bias", bias.shape, {out.cols}));
  add_bias(out, bias.data);
  return out;
}

Matrix MaxtextRoutedDecoder::activated(Matrix gate, const Matrix& up) const {
  activate(activation_, gate);
  multiply_elements(gate, up);
  return gate;
}

Result<Matrix> MaxtextRoutedDecoder::experts(const LayerPlace& place, const std::string& name, const Matrix& h,
                                             const Choices& choices) const {
  return mix_experts(h, choices, count_, [&](int64_t e, const Matrix& rows) -> Result<Matrix> {
    MAXPORT_ASSIGN_OR_RETURN(Matrix gate, expert_product(place, name + ".wi_0", e, rows));
    MAXPORT_ASSIGN_OR_RETURN(const Matrix up, expert_product(place, name + ".wi_1", e, rows));
    MAXPORT_RETURN_IF_ERROR(check_shape(name + ".wi_1", {up.cols}, {gate.cols}));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, expert_product(place, name + ".wo", e, activated(std::move(gate), up)));
    MAXPORT_RETURN_IF_ERROR(check_shape(name + ".wo", {out.cols}, {h.cols}));
    return out;
  });
}

}  // namespace maxport::forward
