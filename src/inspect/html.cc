#include "inspect/html.h"

#include "inspect/page.h"
#include "inspect/report.h"

namespace maxport::inspect {
namespace {

/// JSON that cannot end the script element it stands in.
std::string script_text(const OrderedJson& json) {
  const std::string text = json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
  std::string out;
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out;
}

OrderedJson values_json(const Values& values) {
  return {{"read", values.read}, {"zeros", values.zeros}, {"nans", values.nans}, {"infinities", values.infinities},
          {"least", values.least}, {"most", values.most}, {"mean", values.mean}, {"deviation", values.deviation},
          {"bins", values.bins}, {"problem", values.problem}};
}

}  // namespace

std::string html(const Inspection& inspection, const std::vector<std::optional<Values>>& values, std::optional<uint64_t> sample) {
  OrderedJson json = to_json(inspection);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i]) json["tensors"][i]["values"] = values_json(*values[i]);
  json["read"] = sample ? fmt::format("values: a sample, windows from the front of each tensor until {} elements", *sample) : "values: every element was read";
  std::string page(page_text());
  constexpr std::string_view kMark = "@DATA@";
  const size_t at = page.find(kMark);
  MAXPORT_CHECK(at != std::string::npos);
  return page.replace(at, kMark.size(), script_text(json));
}

}  // namespace maxport::inspect
