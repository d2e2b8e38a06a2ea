#include "forward/huggingface/routed_experts.h"

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

Result<Matrix> RoutedDecoder::experts(const std::string& prefix, const ExpertNames& names, const Matrix& h,
                                      const Choices& choices) const {
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
