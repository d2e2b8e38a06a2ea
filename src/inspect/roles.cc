#include "inspect/roles.h"

#include <array>

#include "huggingface/config_fields.h"

namespace maxport::inspect {
namespace {

constexpr std::array<std::string_view, 4> kNumbers{"rms_norm_eps", "query_pre_attn_scalar", "final_logit_softcapping", "attn_logit_softcapping"};

void add_rope(const huggingface::ConfigRoles& config, std::string_view layers, std::vector<Role>& out) {
  const auto rope = config.rope(layers);
  if (!rope) return;
  const std::string of = layers.empty() ? "" : fmt::format(" of {}", layers);
  out.push_back({"rope_theta" + of, rope->theta, rope->theta_source});
  if (rope->type != "default") out.push_back({"rope_type" + of, rope->type, rope->parameters_source});
}

}  // namespace

std::vector<Role> roles_of(const huggingface::ConfigRoles& config, bool head_in_files) {
  std::vector<Role> out;
  const auto add = [&](std::string_view name, OrderedJson value) { out.push_back({std::string(name), std::move(value), config.source_of(name)}); };
  out.push_back({"model_type", config.model_type(), "model_type"});
  if (const auto architectures = config.architectures(); !architectures.empty()) out.push_back({"architectures", architectures, "architectures"});
  for (const huggingface::IntegerField& field : huggingface::integer_fields())
    if (const auto value = config.optional_integer(field.role); value && *value) add(field.role, **value);
  for (const std::string_view name : kNumbers)
    if (const auto value = config.optional_number(name); value && *value) add(name, **value);
  if (config.rope()) {
    add_rope(config, {}, out);
  } else {
    for (const char* layers : {"full_attention", "sliding_attention"}) add_rope(config, layers, out);
  }
  if (const auto tied = config.tied_head(head_in_files)) out.push_back({"tied head", tied->tied, tied->source});
  return out;
}

}  // namespace maxport::inspect
