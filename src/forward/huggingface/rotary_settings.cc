#include "forward/huggingface/rotary_settings.h"

namespace maxport::forward {
namespace {

/// A number among the rope's parameters; absent and null give the fallback.
double parameter(const huggingface::Rope& rope, const char* name, double fallback) {
  const auto found = rope.parameters.find(name);
  return found != rope.parameters.end() && found->is_number() ? found->get<double>() : fallback;
}

bool truncates(const huggingface::Rope& rope) {
  const auto found = rope.parameters.find("truncate");
  return found == rope.parameters.end() || !found->is_boolean() || found->get<bool>();
}

Result<double> needed(const huggingface::Rope& rope, const char* name) {
  const double value = parameter(rope, name, 0);
  if (value > 0) return value;
  return fail(ErrorKind::kInvalidArgument, "rope of type {} needs a positive {}, which {} does not have",
              printable(rope.type), name,
              printable(rope.parameters_source.empty() ? "the configuration" : rope.parameters_source));
}

Result<Rotary> yarn(const huggingface::ConfigRoles& config, const huggingface::Rope& rope, int64_t dim) {
  YarnScaling scaling{parameter(rope, "factor", 0), parameter(rope, "beta_fast", 32), parameter(rope, "beta_slow", 1),
                      0, truncates(rope)};
  scaling.original_length = parameter(rope, "original_max_position_embeddings", 0);
  if (scaling.original_length == 0) {
    MAXPORT_ASSIGN_OR_RETURN(scaling.original_length, config.number("max_position_embeddings"));
  }
  if (scaling.factor == 0) {
    MAXPORT_ASSIGN_OR_RETURN(const double length, config.number("max_position_embeddings"));
    scaling.factor = length / scaling.original_length;
  }
  Rotary out{yarn_frequencies(rope.theta, dim, scaling), Pairing::kHalves, 1};
  const double mscale = parameter(rope, "mscale", 0), all_dim = parameter(rope, "mscale_all_dim", 0);
  const double derived = mscale != 0 && all_dim != 0
                             ? yarn_mscale(scaling.factor, mscale) / yarn_mscale(scaling.factor, all_dim)
                             : yarn_mscale(scaling.factor);
  out.attention_factor = parameter(rope, "attention_factor", derived);
  return out;
}

/// The share of each head that turns has the frequencies of a whole head; the rest stands still.
Rotary proportional(const huggingface::Rope& rope, int64_t head_dim) {
  Rotary out{linear_scaled(rotary_frequencies(rope.theta, head_dim), parameter(rope, "factor", 1)), Pairing::kHalves,
             1};
  const double share = rope.partial_rotary_factor.value_or(1);
  const auto turning = static_cast<size_t>(share * static_cast<double>(head_dim) / 2);
  for (size_t i = turning; i < out.frequencies.size(); ++i) out.frequencies[i] = 0;
  return out;
}

}  // namespace

Result<Rotary> huggingface_rotary(const huggingface::ConfigRoles& config, std::string_view layer_type,
                                  int64_t head_dim) {
  MAXPORT_ASSIGN_OR_RETURN(const huggingface::Rope rope, config.rope(layer_type));
  if (rope.type == "proportional") return proportional(rope, head_dim);
  const auto dim = static_cast<int64_t>(static_cast<double>(head_dim) * rope.partial_rotary_factor.value_or(1));
  if (rope.type == "default" || rope.type == "mrope") return Rotary{rotary_frequencies(rope.theta, dim)};
  if (rope.type == "linear") {
    MAXPORT_ASSIGN_OR_RETURN(const double factor, needed(rope, "factor"));
    return Rotary{linear_scaled(rotary_frequencies(rope.theta, dim), factor)};
  }
  if (rope.type == "llama3") {
    Llama3Scaling scaling{};
    MAXPORT_ASSIGN_OR_RETURN(scaling.factor, needed(rope, "factor"));
    MAXPORT_ASSIGN_OR_RETURN(scaling.low_frequency_factor, needed(rope, "low_freq_factor"));
    MAXPORT_ASSIGN_OR_RETURN(scaling.high_frequency_factor, needed(rope, "high_freq_factor"));
    MAXPORT_ASSIGN_OR_RETURN(scaling.original_length, needed(rope, "original_max_position_embeddings"));
    return Rotary{llama3_scaled(rotary_frequencies(rope.theta, dim), scaling)};
  }
  if (rope.type == "yarn") return yarn(config, rope, dim);
  return fail(ErrorKind::kUnsupported,
              "no forward pass knows rotary embeddings of type \"{}\"; known are default, linear, llama3, yarn and "
              "proportional",
              printable(rope.type));
}

}  // namespace maxport::forward
