// How a Hugging Face configuration becomes MaxText settings, family by family. Used by run_configuration.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "maxtext/run_configuration.h"

namespace maxport::maxtext {

/// How rotary embeddings are told to MaxText.
enum class RopeStyle {
  kHalves,       ///< rope_type default, linear or yarn over two halves
  kLlama,        ///< MaxText's llama3.1 form, interleaved, with or without its fixed scaling
  kLocalGlobal,  ///< two bases: local and global layers (gemma3)
  kGemma4,       ///< two bases and a proportion of the global heads
  kInterleaved,  ///< yarn over interleaved pairs, scale applied to the queries (deepseek)
  kCompressed,   ///< two bases: plain and compressed layers (deepseek4)
};

enum class ExpertStyle {
  kDense,
  kMixtral,     ///< experts as wide as intermediate_size
  kQwen,        ///< experts in every layer, perhaps a shared one
  kGemma4,      ///< experts beside a dense network
  kGptOss,
  kDeepseek,    ///< some dense layers first
  kDeepseek4,
};

/// What is the same for all models of a family.
struct FamilyFacts {
  std::string_view family;
  std::string_view decoder_block;         ///< for a model with experts see `moe_decoder_block`
  std::string_view moe_decoder_block = {};
  RopeStyle rope = RopeStyle::kHalves;
  ExpertStyle experts = ExpertStyle::kDense;
  bool scaled_embedding = false;          ///< the tied logits are divided by sqrt(width)
  bool use_qk_norm = false;
  bool attention_bias = false;
  bool post_norms = false;                ///< norms after attention and feed-forward (gemma)
  bool sliding_window = false;
  int layer_cycle = 0;                    ///< layers that MaxText scans as one block; 0: not told
  std::string_view vision_encoder_block = {};
  /// Code of MaxText depends on model_name; a prefix of the names that select it.
  std::string_view needs_name = {};
};

/// Null for an unknown family.
const FamilyFacts* family_facts(std::string_view family);

/// Collects settings in order, brought to MaxText's types.
class SettingsBuilder {
 public:
  SettingsBuilder(const RunConfigurationRequest& asked, const FamilyFacts& family, std::vector<std::string>& found)
      : request(asked), config(asked.config), facts(family), notes(found) {}

  void set(std::string_view key, Json value);
  /// Copies a role, an integer unless the setting is a float, where the configuration has it or its value follows.
  Result<> copy(std::string_view key, std::string_view role);
  Result<> copy_from(const huggingface::ConfigRoles& section, std::string_view key, std::string_view role);
  void note(std::string text) { notes.push_back(std::move(text)); }

  const RunConfigurationRequest& request;
  const huggingface::ConfigRoles& config;
  const FamilyFacts& facts;
  std::vector<std::string>& notes;
  OrderedJson out = OrderedJson::object();
};

// Each adds the settings of one part of the model.
Result<> derive_decoder(SettingsBuilder& builder);
Result<> derive_attention(SettingsBuilder& builder);
Result<> derive_rope(SettingsBuilder& builder);
Result<> derive_experts(SettingsBuilder& builder);
Result<> derive_linear_attention(SettingsBuilder& builder);
Result<> derive_vision(SettingsBuilder& builder);
Result<> derive_audio(SettingsBuilder& builder);

}  // namespace maxport::maxtext
