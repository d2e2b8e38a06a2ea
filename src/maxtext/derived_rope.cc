#include <cmath>

#include "maxtext/derived_settings.h"

namespace maxport::maxtext {
namespace {

using huggingface::Rope;

double parameter(const Rope& rope, const char* name, double fallback) {
  const auto found = rope.parameters.find(name);
  return found != rope.parameters.end() && found->is_number() ? found->get<double>() : fallback;
}

bool flag(const Rope& rope, const char* name, bool fallback) {
  const auto found = rope.parameters.find(name);
  return found != rope.parameters.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

void note_unknown_type(SettingsBuilder& builder, const Rope& rope) {
  builder.note(fmt::format("MaxText has no rotary embedding of type {}; the plain one is used and long contexts will differ",
                           printable(rope.type)));
}

/// MaxText's llama3.1 scaling has its four numbers built in.
void set_llama(SettingsBuilder& builder, const Rope& rope) {
  const bool scaled = rope.type == "llama3";
  builder.set("rope_type", "llama3.1");
  builder.set("rope_use_scale", scaled);
  if (!scaled && rope.type != "default") note_unknown_type(builder, rope);
  if (!scaled) return;
  const std::pair<const char*, double> built_in[] = {
      {"factor", 8}, {"low_freq_factor", 1}, {"high_freq_factor", 4}, {"original_max_position_embeddings", 8192}};
  for (const auto& [name, value] : built_in)
    if (parameter(rope, name, value) != value)
      builder.note(fmt::format("the model's rope scaling has {} {}; MaxText's has {} built in, so its logits will differ", name,
                               parameter(rope, name, value), value));
}

Result<> set_yarn(SettingsBuilder& builder, const Rope& rope, bool interleaved) {
  MAXPORT_ASSIGN_OR_RETURN(auto longest, builder.config.optional_integer("max_position_embeddings"));
  if (longest) builder.set("max_position_embeddings", *longest);
  const bool scaled = rope.type == "yarn";
  builder.set("rope_type", "yarn");
  builder.set("original_max_position_embeddings",
              parameter(rope, "original_max_position_embeddings", static_cast<double>(longest.value_or(4096))));
  // Without scaling a factor of one leaves plain frequencies.
  builder.set("rope_factor", scaled ? parameter(rope, "factor", 1) : 1.0);
  builder.set("beta_fast", parameter(rope, "beta_fast", 32));
  builder.set("beta_slow", parameter(rope, "beta_slow", 1));
  builder.set("rope_interleave", interleaved);
  builder.set("rope_truncate", flag(rope, "truncate", true));
  builder.set("rope_attention_scaling", !interleaved);
  return {};
}

/// Where the embedding's scale is not yarn's own, 0.1 ln(factor) + 1.
void note_attention_factor(SettingsBuilder& builder, const Rope& rope) {
  const double usual = 0.1 * std::log(parameter(rope, "factor", 1)) + 1;
  const double stated = parameter(rope, "attention_factor", usual);
  if (std::abs(stated - usual) > 1e-6)
    builder.note(fmt::format("the model's yarn scale is {}; MaxText computes {}", stated, usual));
}

Result<> set_halves(SettingsBuilder& builder, const Rope& rope) {
  if (rope.type == "linear") {
    builder.set("rope_linear_scaling_factor", parameter(rope, "factor", 1));
  } else if (rope.type == "yarn") {
    MAXPORT_RETURN_IF_ERROR(set_yarn(builder, rope, false));
    note_attention_factor(builder, rope);
  } else if (rope.type != "default") {
    note_unknown_type(builder, rope);
  }
  if (rope.partial_rotary_factor) builder.set("partial_rotary_factor", *rope.partial_rotary_factor);
  const auto section = rope.parameters.find("mrope_section");
  if (section != rope.parameters.end() && section->is_array() && section->size() == 3) {
    builder.set("use_mrope", true);
    builder.set("mrope_section", *section);
  }
  return {};
}

/// The scale of the queries follows mscale_all_dim; that of the embedding is the ratio of both, which is 1 when equal.
Result<> set_interleaved(SettingsBuilder& builder, const Rope& rope) {
  MAXPORT_RETURN_IF_ERROR(set_yarn(builder, rope, true));
  const double all = parameter(rope, "mscale_all_dim", 0), one = parameter(rope, "mscale", 1);
  builder.set("mscale", all);
  if (rope.type == "yarn" && all != one)
    builder.note(fmt::format("the model's mscale is {} and its mscale_all_dim {}; MaxText has one for both", one, all));
  return {};
}

Result<> set_local_global(SettingsBuilder& builder, const Rope& global) {
  MAXPORT_ASSIGN_OR_RETURN(Rope local, builder.config.rope("sliding_attention"));
  builder.set("local_rope_max_timescale", local.theta);
  if (builder.facts.rope == RopeStyle::kLocalGlobal) {
    builder.set("rope_linear_scaling_factor", global.type == "linear" ? parameter(global, "factor", 1) : 1.0);
    if (global.type != "linear" && global.type != "default") note_unknown_type(builder, global);
    return {};
  }
  builder.set("global_rope_max_timescale", global.theta);
  builder.set("global_rope_proportion", global.partial_rotary_factor.value_or(1.0));
  builder.set("local_rope_proportion", local.partial_rotary_factor.value_or(1.0));
  return {};
}

Result<> set_compressed(SettingsBuilder& builder, const Rope& rope) {
  builder.set("rope_type", "default");
  MAXPORT_RETURN_IF_ERROR(builder.copy("compressed_rope_max_timescale", "compress_rope_theta"));
  MAXPORT_RETURN_IF_ERROR(builder.copy("max_position_embeddings", "max_position_embeddings"));
  if (rope.parameters.contains("original_max_position_embeddings"))
    builder.set("original_max_position_embeddings", parameter(rope, "original_max_position_embeddings", 0));
  if (rope.type == "yarn" && parameter(rope, "factor", 1) != 1)
    builder.note("MaxText's deepseek4 does not scale its rotary embedding; beyond the original context logits will differ");
  return {};
}

}  // namespace

Result<> derive_rope(SettingsBuilder& builder) {
  // Where layers differ, MaxText's main base is that of the global ones.
  MAXPORT_ASSIGN_OR_RETURN(Rope rope, builder.config.rope("full_attention"));
  builder.set("rope_max_timescale", rope.theta);
  switch (builder.facts.rope) {
    case RopeStyle::kHalves: MAXPORT_RETURN_IF_ERROR(set_halves(builder, rope)); break;
    case RopeStyle::kLlama: set_llama(builder, rope); break;
    case RopeStyle::kLocalGlobal:
    case RopeStyle::kGemma4: MAXPORT_RETURN_IF_ERROR(set_local_global(builder, rope)); break;
    case RopeStyle::kInterleaved: MAXPORT_RETURN_IF_ERROR(set_interleaved(builder, rope)); break;
    case RopeStyle::kCompressed: MAXPORT_RETURN_IF_ERROR(set_compressed(builder, rope)); break;
  }
  if (builder.facts.family != "olmo3") return {};
  MAXPORT_ASSIGN_OR_RETURN(Rope local, builder.config.rope("sliding_attention"));
  if (local.type != rope.type)
    builder.note(fmt::format("the model's local layers have rope of type {}; MaxText's olmo3 uses {} in all layers",
                             printable(local.type), printable(rope.type)));
  return {};
}

}  // namespace maxport::maxtext
