#include "compare/report_text.h"

#include <cmath>

namespace maxport::compare {
namespace {

std::string side_text(const TensorSide& side) { return fmt::format("{}{}", dtype_name(side.dtype), shape_text(side.shape)); }

std::string sides_text(const TensorComparison& tensor) {
  if (!tensor.a) return side_text(*tensor.b);
  if (!tensor.b) return side_text(*tensor.a);
  if (tensor.a->dtype == tensor.b->dtype && tensor.a->shape == tensor.b->shape) return side_text(*tensor.a);
  return side_text(*tensor.a) + " and " + side_text(*tensor.b);
}

std::string number_text(DType dtype, const Element& element) {
  if (!is_number(dtype)) return hex(ByteSpan(element.bits).first(static_cast<size_t>(dtype_bytes(dtype))));
  const double value = number(dtype, element.bits.data());
  return dtype == DType::kFloat64 ? fmt::format("{}", value) : fmt::format("{:.9g}", value);
}

OrderedJson json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

OrderedJson side_json(const std::optional<TensorSide>& side) {
  if (!side) return nullptr;
  return {{"dtype", dtype_name(side->dtype)}, {"shape", side->shape}};
}

OrderedJson element_json(DType dtype, const Element& element) {
  OrderedJson out = OrderedJson::object();
  if (is_number(dtype)) out["value"] = json_number(number(dtype, element.bits.data()));
  // Most significant byte first, as one writes a number.
  const auto size = static_cast<size_t>(dtype_bytes(dtype));
  const Bytes bits(std::reverse_iterator(element.bits.begin() + size), std::reverse_iterator(element.bits.begin()));
  out["bits"] = "0x" + hex(bits);
  return out;
}

bool same_types(const TensorComparison& tensor) { return tensor.statistics.a_dtype == tensor.statistics.b_dtype; }

OrderedJson tensor_json(const TensorComparison& tensor) {
  OrderedJson out{{"name", tensor.name}, {"status", status_name(tensor.status)}, {"a", side_json(tensor.a)}, {"b", side_json(tensor.b)}};
  if (!tensor.compared) return out;
  const Statistics& s = tensor.statistics;
  out["elements"] = s.elements;
  out["differing"] = s.differing;
  out["beyond_tolerance"] = s.beyond;
  out["non_finite"] = s.non_finite;
  out["equal_nans"] = s.equal_nans;
  out["max_difference"] = json_number(s.max_difference);
  out["mean_difference"] = json_number(s.mean_difference());
  out["cosine"] = s.cosine() ? OrderedJson(*s.cosine()) : OrderedJson(nullptr);
  out["max_ulp"] = same_types(tensor) ? OrderedJson(s.max_ulp) : OrderedJson(nullptr);
  if (!tensor.first) return out;
  OrderedJson first{{"tensor", tensor.first->tensor}, {"index", tensor.first->index}};
  if (!tensor.first->hf_tensor.empty()) {
    first["hf_tensor"] = tensor.first->hf_tensor;
    first["hf_index"] = tensor.first->hf_index;
  }
  first["a"] = element_json(s.a_dtype, s.first_a);
  first["b"] = element_json(s.b_dtype, s.first_b);
  out["first_difference"] = std::move(first);
  return out;
}

std::string differences_text(const TensorComparison& tensor) {
  const Statistics& s = tensor.statistics;
  std::string out = fmt::format("{} of {} elements differ", s.differing, s.elements);
  if (is_number(s.a_dtype) && is_number(s.b_dtype)) {
    out += fmt::format(", max {:.4g}, mean {:.4g}", s.max_difference, s.mean_difference());
    if (const auto cosine = s.cosine()) out += fmt::format(", cosine {:.9g}", *cosine);
    if (same_types(tensor)) out += fmt::format(", {} ulp", s.max_ulp);
    if (s.non_finite > 0) out += fmt::format(", {} not finite", s.non_finite);
  }
  if (!tensor.first) return out;
  out += fmt::format("; first at {}", shape_text(tensor.first->index));
  if (tensor.first->tensor != tensor.name) out += " of " + printable(tensor.first->tensor);
  if (!tensor.first->hf_tensor.empty() && tensor.first->hf_tensor != tensor.first->tensor)
    out += fmt::format(" ({} {})", printable(tensor.first->hf_tensor), shape_text(tensor.first->hf_index));
  return out + fmt::format(": {} and {}", number_text(s.a_dtype, s.first_a), number_text(s.b_dtype, s.first_b));
}

}  // namespace

std::string tensor_line(const TensorComparison& tensor) {
  std::string out = fmt::format("{:<16} {}  {}", status_name(tensor.status), printable(tensor.name), sides_text(tensor));
  if (tensor.compared && tensor.statistics.differing > 0) out += "  " + differences_text(tensor);
  if (tensor.compared && tensor.statistics.differing == 0 && tensor.status == Status::kOtherDtype) out += "  equal numbers";
  return out;
}

std::string summary_line(const Report& report, bool ignore_dtypes) {
  std::string out = fmt::format("{}: {} tensors", report.equal(ignore_dtypes) ? "equal" : "DIFFERENT", report.tensors.size());
  for (const Status status : {Status::kEqual, Status::kWithinTolerance, Status::kDifferent, Status::kOtherDtype, Status::kOtherShape,
                              Status::kOnlyInA, Status::kOnlyInB})
    if (const size_t count = report.count(status); count > 0) out += fmt::format(", {} {}", count, status_name(status));
  Statistics all;
  for (const TensorComparison& tensor : report.tensors) all.merge(tensor.statistics);
  out += fmt::format("; {} of {} elements differ", all.differing, all.elements);
  if (all.differing > 0) out += fmt::format(", max {:.4g}", all.max_difference);
  if (all.equal_nans > 0) out += fmt::format("; {} NaN have equal bits on both sides and count as equal", all.equal_nans);
  return out;
}

OrderedJson to_json(const Report& report, bool ignore_dtypes) {
  OrderedJson summary = OrderedJson::object();
  summary["tensors"] = report.tensors.size();
  for (const Status status : {Status::kEqual, Status::kWithinTolerance, Status::kDifferent, Status::kOtherDtype, Status::kOtherShape,
                              Status::kOnlyInA, Status::kOnlyInB})
    summary[std::string(status_name(status))] = report.count(status);
  Statistics all;
  OrderedJson tensors = OrderedJson::array();
  for (const TensorComparison& tensor : report.tensors) {
    all.merge(tensor.statistics);
    tensors.push_back(tensor_json(tensor));
  }
  summary["elements"] = all.elements;
  summary["differing_elements"] = all.differing;
  summary["max_difference"] = json_number(all.max_difference);
  summary["equal_nans"] = all.equal_nans;
  return {{"equal", report.equal(ignore_dtypes)}, {"a", report.a}, {"b", report.b}, {"how", report.how}, {"tolerance", report.tolerance},
          {"ignore_dtypes", ignore_dtypes}, {"summary", summary}, {"notes", report.notes}, {"tensors", tensors}};
}

}  // namespace maxport::compare
