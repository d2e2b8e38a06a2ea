#include "forward/maxtext/rotary_settings.h"

#include <algorithm>

namespace maxport::forward {
namespace {

/// 1 / (min (max / min)^(2 i / dim))
Result<std::vector<double>> geometric(const maxtext::Settings& settings, double max_timescale, int64_t dim) {
  MAXPORT_ASSIGN_OR_RETURN(const double least, settings.number("rope_min_timescale"));
  std::vector<double> out = rotary_frequencies(max_timescale / least, dim);
  for (double& frequency : out) frequency /= least;
  return out;
}

// MaxText's class for Llama 3.1 has the numbers of that release built in.
constexpr Llama3Scaling kBuiltInLlamaScaling = {8, 1, 4, 8192};

Result<Rotary> llama(const maxtext::Settings& settings, double max_timescale, int64_t dim) {
  MAXPORT_ASSIGN_OR_RETURN(std::vector<double> frequencies, geometric(settings, max_timescale, dim));
  MAXPORT_ASSIGN_OR_RETURN(const bool scaled, settings.boolean("rope_use_scale"));
  if (scaled) frequencies = llama3_scaled(std::move(frequencies), kBuiltInLlamaScaling);
  return Rotary{std::move(frequencies), Pairing::kInterleaved};
}

Result<Rotary> yarn(const maxtext::Settings& settings, double max_timescale, int64_t dim) {
  YarnScaling scaling{};
  MAXPORT_ASSIGN_OR_RETURN(scaling.factor, settings.number("rope_factor"));
  MAXPORT_ASSIGN_OR_RETURN(scaling.beta_fast, settings.number("beta_fast"));
  MAXPORT_ASSIGN_OR_RETURN(scaling.beta_slow, settings.number("beta_slow"));
  MAXPORT_ASSIGN_OR_RETURN(scaling.original_length, settings.number("original_max_position_embeddings"));
  MAXPORT_ASSIGN_OR_RETURN(scaling.truncate, settings.boolean("rope_truncate"));
  MAXPORT_ASSIGN_OR_RETURN(const bool interleaved, settings.boolean("rope_interleave"));
  MAXPORT_ASSIGN_OR_RETURN(const bool scales_attention, settings.boolean("rope_attention_scaling"));
  // MaxText may put the turned pairs into another order, the same for queries and keys; no score depends on it.
  return Rotary{yarn_frequencies(max_timescale, dim, scaling), interleaved ? Pairing::kInterleaved : Pairing::kHalves,
                scales_attention ? yarn_mscale(scaling.factor) : 1};
}

Result<Rotary> partial(const maxtext::Settings& settings, double max_timescale, int64_t head_dim, double factor) {
  const auto dim = static_cast<int64_t>(static_cast<double>(head_dim) * factor);
  MAXPORT_ASSIGN_OR_RETURN(std::vector<double> frequencies, geometric(settings, max_timescale, dim));
  return Rotary{std::move(frequencies)};
}

/// Gemma 4: the frequencies of a whole head, of which only the first share turns.
Result<Rotary> padded(const maxtext::Settings& settings, double max_timescale, int64_t head_dim, double factor) {
  MAXPORT_ASSIGN_OR_RETURN(std::vector<double> frequencies, geometric(settings, max_timescale, head_dim));
  const auto turning = static_cast<int64_t>(static_cast<double>(head_dim) * factor) / 2;
  std::fill(frequencies.begin() + std::min<int64_t>(turning, head_dim / 2), frequencies.end(), 0.0);
  return Rotary{std::move(frequencies)};
}

Result<Rotary> plain(const maxtext::Settings& settings, double max_timescale, const MaxtextRotaryRequest& request,
                     bool is_gemma3) {
  MAXPORT_ASSIGN_OR_RETURN(const double local_timescale, settings.number("local_rope_max_timescale"));
  MAXPORT_ASSIGN_OR_RETURN(double factor, settings.number("rope_linear_scaling_factor"));
  if (request.local && local_timescale > 0) max_timescale = local_timescale;
  if (request.local && is_gemma3) factor = 1;
  MAXPORT_ASSIGN_OR_RETURN(std::vector<double> frequencies, geometric(settings, max_timescale, request.head_dim));
  return Rotary{linear_scaled(std::move(frequencies), factor)};
}

}  // namespace

Result<Rotary> maxtext_rotary(const maxtext::Settings& settings, const MaxtextRotaryRequest& request) {
  const std::string name = settings.model_name().value_or("default");
  MAXPORT_ASSIGN_OR_RETURN(const std::string type, settings.text("rope_type"));
  MAXPORT_ASSIGN_OR_RETURN(double max_timescale, settings.number("rope_max_timescale"));
  max_timescale = request.max_timescale.value_or(max_timescale);
  MAXPORT_ASSIGN_OR_RETURN(const double configured, settings.number("partial_rotary_factor"));
  const double factor = request.partial_rotary_factor.value_or(configured);
  MAXPORT_ASSIGN_OR_RETURN(const bool three_axes, settings.boolean("use_mrope"));
  // The three axes of a multimodal position are equal for text.
  if (three_axes) return partial(settings, max_timescale, request.head_dim, factor);
  if (name.starts_with("llama3.1") || type.starts_with("llama3.1"))
    return llama(settings, max_timescale, request.head_dim);
  if (type.starts_with("yarn")) return yarn(settings, max_timescale, request.head_dim);
  if (request.hybrid) return partial(settings, max_timescale, request.head_dim, configured);
  if (request.partial_rotary_factor && factor < 1)
    return name.starts_with("gemma4") ? padded(settings, max_timescale, request.head_dim, factor)
                                      : partial(settings, max_timescale, request.head_dim, factor);
  return plain(settings, max_timescale, request, name.starts_with("gemma3"));
}

}  // namespace maxport::forward
