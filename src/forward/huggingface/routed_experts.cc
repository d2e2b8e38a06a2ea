#include "forward/huggingface/routed_experts.h"

#include "forward/matmul.h"

namespace maxport::forward {

Result<> RoutedDecoder::prepare(std::vector<std::string> layer_types) {
  MAXPORT_RETURN_IF_ERROR(HuggingfaceDecoder::prepare(std::move(layer_types)));
  MAXPORT_ASSIGN_OR_RETURN(count_, config_.integer("num_experts"));
  MAXPORT_ASSIGN_OR_RETURN(chosen_, config_.integer("num_experts_per_tok"));
  if (chosen_ < 1 || chosen_ > count_)
    return fail(ErrorKind::kInvalidArgument, "a token cannot choose {} of {} experts", chosen_, count_);
  return {};
}

Result<Matrix> RoutedDecoder::gate(const std::string& name, const Matrix& h, bool bias) const {
  MAXPORT_ASSIGN_OR_RETURN(Matrix logits, linear(name, h, bias));
  MAXPORT_RETURN_IF_ERROR(check_shape(name, {logits.cols}, {count_}));
  return logits;
}

/// rows times the transpose of one expert's matrix.
Result<Matrix> RoutedDecoder::stacked_product(const std::string& name, int64_t expert, const Matrix& rows) const {
  MAXPORT_ASSIGN_OR_RETURN(const Tensor weight, weights_.slice(name, 0, expert));
  MAXPORT_RETURN_IF_ERROR(check_shape(name, weight.shape, {-1, rows.cols}));
  Matrix out(rows.rows, weight.shape[0]);
  multiply_transposed(view(out), view(rows), {weight.data.data(), out.cols, rows.cols, rows.cols});
  return out;
}

Result<Matrix> RoutedDecoder::stacked_experts(const std::string& prefix, const Matrix& h,
                                              const Choices& choices) const {
  const std::string both_name = prefix + "experts.gate_up_proj", down_name = prefix + "experts.down_proj";
  return mix_experts(h, choices, count_, [&](int64_t e, const Matrix& rows) -> Result<Matrix> {
    MAXPORT_ASSIGN_OR_RETURN(const Matrix both, stacked_product(both_name, e, rows));
    const int64_t inner = both.cols / 2;
    MAXPORT_RETURN_IF_ERROR(check_shape(both_name, {both.cols}, {2 * inner}));
    Matrix gate = columns(both, 0, inner);
    activate(activation_, gate);
    multiply_elements(gate, columns(both, inner, inner));
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, stacked_product(down_name, e, gate));
    MAXPORT_RETURN_IF_ERROR(check_shape(down_name, {out.cols}, {h.cols}));
    return out;
  });
}

Result<Matrix> RoutedDecoder::experts(const std::string& prefix, const ExpertNames& names, const Matrix& h,
                                      const Choices& choices) const {
  if (weights_.contains(prefix + "experts.gate_up_proj")) return stacked_experts(prefix, h, choices);
  return mix_experts(h, choices, count_, [&](int64_t e, const Matrix& rows) -> Result<Matrix> {
    const auto name = [&](std::string_view part) { return fmt::format("{}experts.{}.{}", prefix, e, part); };
    MAXPORT_ASSIGN_OR_RETURN(Matrix out, linear(name(names.gate), rows));
    activate(activation_, out);
    MAXPORT_ASSIGN_OR_RETURN(const Matrix up, linear(name(names.up), rows));
    MAXPORT_RETURN_IF_ERROR(check_shape(name(names.up), {up.cols}, {out.cols}));
    multiply_elements(out, up);
    MAXPORT_ASSIGN_OR_RETURN(out, linear(name(names.down), out));
    MAXPORT_RETURN_IF_ERROR(check_shape(name(names.down), {out.cols}, {h.cols}));
    return out;
  });
}

}  // namespace maxport::forward
