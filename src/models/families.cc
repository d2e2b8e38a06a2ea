// The table of model families.
#include "models/families.h"

#include <array>

namespace maxport::models {
namespace {

using Names = std::array<std::string_view, 1>;

constexpr Names kLlama{"llama"};

constexpr std::array kFamilies{
    Family{"llama", "Llama 3.1", kLlama, true, {}, llama},
};

}  // namespace

std::span<const Family> all_families() { return kFamilies; }

const Family* find_family(std::string_view name) {
  for (const Family& family : kFamilies)
    if (family.name == name) return &family;
  return nullptr;
}

Result<ParameterMap> parameter_map(const Family& family, const ModelContext& context) {
  if (context.layout.scan_layers && !family.scanned)
    return fail(ErrorKind::kUnsupported, "{} with scan_layers=true: {}; convert with scan_layers=false", family.title,
                family.why_not_scanned);
  return family.parameter_map(context);
}

}  // namespace maxport::models
