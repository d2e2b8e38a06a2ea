#include "huggingface/config_fields.h"

#include <array>

namespace maxport::huggingface {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::string_view kLayers[] = {"num_layers", "n_layers", "depth", "encoder_layers"};
constexpr std::string_view kHidden[] = {"d_model"};
constexpr std::string_view kHeads[] = {"num_heads", "encoder_attention_heads"};
constexpr std::string_view kIntermediate[] = {"encoder_ffn_dim"};
constexpr std::string_view kExperts[] = {"num_local_experts", "n_routed_experts"};
constexpr std::string_view kExpertsPerToken[] = {"top_k_experts", "num_experts_per_token", "moe_topk"};
constexpr std::string_view kSharedExperts[] = {"num_shared_experts"};
constexpr std::string_view kChannels[] = {"num_channels"};
constexpr std::string_view kActivation[] = {"hidden_act"};
constexpr std::string_view kType[] = {"torch_dtype"};
constexpr std::string_view kNextTokenLayers[] = {"mtp_num_hidden_layers"};

// The upper ends only keep products of a few of these inside 64 bits.
constexpr int64_t kWide = int64_t{1} << 24;
constexpr int64_t kNarrow = 65536;
constexpr IntegerField kIntegers[] = {
    {"num_hidden_layers", kLayers, 1, kMaxLayers},
    {"hidden_size", kHidden, 1, kWide},
    {"intermediate_size", kIntermediate, 1, kWide},
    {"vocab_size", {}, 1, INT32_MAX},
    {"num_attention_heads", kHeads, 1, kNarrow},
    {"num_key_value_heads", {}, 1, kNarrow},
    {"head_dim", {}, 1, kNarrow},
    {"num_experts", kExperts, 0, kNarrow},
    {"num_experts_per_tok", kExpertsPerToken, 0, kNarrow},
    {"n_shared_experts", kSharedExperts, 0, kNarrow},
    {"moe_intermediate_size", {}, 0, kWide},
    {"shared_expert_intermediate_size", {}, 0, kWide},
    {"first_k_dense_replace", {}, 0, kMaxLayers},
    {"num_nextn_predict_layers", kNextTokenLayers, 0, kMaxLayers},
    {"num_kv_shared_layers", {}, 0, kMaxLayers},
    {"q_lora_rank", {}, 0, kWide},
    {"kv_lora_rank", {}, 0, kWide},
    {"qk_nope_head_dim", {}, 0, kNarrow},
    {"qk_rope_head_dim", {}, 0, kNarrow},
    {"v_head_dim", {}, 0, kNarrow},
    {"sliding_window", {}, -1, INT32_MAX},
    {"max_position_embeddings", {}, 1, int64_t{1} << 40},
    {"full_attention_interval", {}, 1, kMaxLayers},
    {"hidden_size_per_layer_input", {}, 0, kWide},
    {"vocab_size_per_layer_input", {}, 0, INT32_MAX},
    {"linear_num_key_heads", {}, 0, kNarrow},
    {"linear_num_value_heads", {}, 0, kNarrow},
    {"linear_key_head_dim", {}, 0, kNarrow},
    {"linear_value_head_dim", {}, 0, kNarrow},
    {"linear_conv_kernel_dim", {}, 0, kNarrow},
    {"patch_size", {}, 1, kNarrow},
    {"in_channels", kChannels, 1, kNarrow},
};

struct OtherField {
  std::string_view role;
  Names spellings;
};

constexpr OtherField kOthers[] = {
    {"hidden_activation", kActivation},
    {"dtype", kType},
};

struct Default {
  std::string_view model_type;
  std::string_view role;
  double value;
};

// Read from the configuration classes of transformers 5.24 for what published configs of these families omit.
constexpr Default kDefaults[] = {
    {"gemma2", "num_attention_heads", 8},
    {"gemma2", "num_key_value_heads", 4},
    {"gemma2", "head_dim", 256},
    {"gemma2", "rms_norm_eps", 1e-6},
    {"gemma2", "query_pre_attn_scalar", 256},
    {"gemma2", "rope_theta", 10000},
    {"gemma2", "sliding_window", 4096},
    {"gemma2", "attn_logit_softcapping", 50},
    {"gemma2", "final_logit_softcapping", 30},
    {"gemma3_text", "num_attention_heads", 8},
    {"gemma3_text", "num_key_value_heads", 4},
    {"gemma3_text", "head_dim", 256},
    {"gemma3_text", "vocab_size", 262208},
    {"gemma3_text", "rms_norm_eps", 1e-6},
    {"gemma3_text", "query_pre_attn_scalar", 256},
    {"gemma3_text", "rope_theta", 1000000},
    {"gemma3_text", "rope_local_base_freq", 10000},
    {"gemma3_text", "sliding_window", 4096},
    {"gemma3_text", "sliding_window_pattern", 6},
    {"llama", "rms_norm_eps", 1e-6},
    {"llama", "rope_theta", 10000},
    {"mistral", "rms_norm_eps", 1e-6},
    {"mistral", "rope_theta", 10000},
    {"qwen2", "rms_norm_eps", 1e-6},
    {"qwen2", "rope_theta", 10000},
    {"deepseek_v2", "rope_theta", 10000},
    {"deepseek_v3", "rope_theta", 10000},
};

}  // namespace

std::span<const IntegerField> integer_fields() { return kIntegers; }

Names other_spellings(std::string_view role) {
  for (const IntegerField& field : kIntegers)
    if (field.role == role) return field.spellings;
  for (const OtherField& field : kOthers)
    if (field.role == role) return field.spellings;
  return {};
}

bool spellings_must_agree(std::string_view role) {
  for (const IntegerField& field : kIntegers)
    if (field.role == role) return true;
  return false;
}

std::optional<double> class_default(std::string_view model_type, std::string_view role) {
  for (const Default& row : kDefaults)
    if (row.model_type == model_type && row.role == role) return row.value;
  return std::nullopt;
}

}  // namespace maxport::huggingface
