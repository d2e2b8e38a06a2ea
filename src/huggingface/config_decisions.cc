// The questions to a config that take more than one field: tied head, quantisation, notes.
#include <array>

#include "huggingface/config_roles.h"

namespace maxport::huggingface {
namespace {

/// Every level that may speak for the whole model, outermost first.
constexpr std::array<std::string_view, 4> kLevels = {"", "text_config", "thinker_config", "thinker_config.text_config"};

std::string joined(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

/// Member of an object, or null when absent or JSON null.
const Json* member(const Json* object, std::string_view key) {
  if (object == nullptr) return nullptr;
  const auto at = object->find(key);
  return at == object->end() || at->is_null() ? nullptr : &*at;
}

}  // namespace

Result<std::optional<TiedHead>> ConfigRoles::stated_tie() const {
  constexpr std::string_view kKey = "tie_word_embeddings";
  std::optional<TiedHead> decision;
  for (std::string_view level : kLevels) {
    const Json* value = member(object_at(*document_, level), kKey);
    if (value == nullptr) continue;
    const std::string source = joined(level, kKey);
    if (!value->is_boolean())
      return fail(ErrorKind::kCorruptData, "{}: {} is {}, expected true or false", what_, source, json_kind(*value));
    const bool tied = value->get<bool>();
    if (decision && decision->tied != tied)
      return fail(ErrorKind::kInvalidArgument, "{}: {} is {}, but {} is {}; correct one of them", what_,
                  decision->source, decision->tied, source, tied);
    decision = TiedHead{tied, source};
  }
  return decision;
}

Result<TiedHead> ConfigRoles::tied_head(bool head_in_files) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto stated, stated_tie());
  if (stated) return *stated;
  return head_in_files ? TiedHead{false, "tie_word_embeddings is absent; the files hold a head"}
                       : TiedHead{true, "tie_word_embeddings is absent; the files hold no head"};
}

Result<std::optional<Quantization>> ConfigRoles::quantization() const {
  for (std::string_view level : kLevels) {
    for (std::string_view key : {"quantization_config", "compression_config"}) {
      const Json* config = member(object_at(*document_, level), key);
      if (config == nullptr || (config->is_object() && config->empty())) continue;
      const std::string source = joined(level, key);
      const Json* method = config->is_object() ? member(config, "quant_method") : nullptr;
      if (method == nullptr || !method->is_string())
        return fail(ErrorKind::kUnsupported, "{}: {} names no quant_method, so its weights cannot be read", what_,
                    source);
      const std::string name = method->get<std::string>();
      if (name == "fp8" || name == "mxfp4") return Quantization{name, source, *config};
      return fail(ErrorKind::kUnsupported,
                  "{}: weights quantised with {} cannot be converted, only fp8 and mxfp4 can; use the model's "
                  "unquantised weights",
                  what_, printable(name));
    }
  }
  return std::nullopt;
}

Result<int64_t> ConfigRoles::weight_block_size() const {
  constexpr int64_t kDefault = 128;
  MAXPORT_ASSIGN_OR_RETURN(const auto quantized, quantization());
  const Json* stated = quantized ? member(&quantized->config, "weight_block_size") : nullptr;
  if (stated == nullptr) return kDefault;
  const Json& edge = stated->is_array() && !stated->empty() ? (*stated)[0] : *stated;
  if (!edge.is_number_integer() || edge.get<int64_t>() < 1 ||
      (stated->is_array() && (stated->size() != 2 || (*stated)[1] != edge)))
    return fail(ErrorKind::kUnsupported, "{}: {}.weight_block_size is {}, expected two equal numbers", what_,
                quantized->source, printable(stated->dump()));
  return edge.get<int64_t>();
}

std::vector<std::string> ConfigRoles::notes() const {
  std::vector<std::string> notes;
  const auto names = architectures();
  if (document_->contains("architectures") && names.empty())
    notes.push_back(fmt::format("{}: architectures is empty; going by model_type", what_));
  if (names.size() > 1)
    notes.push_back(fmt::format("{}: architectures has {} entries; going by model_type", what_, names.size()));
  if (document_->contains("auto_map"))
    notes.push_back(fmt::format("{}: auto_map points at code in the repository; it is never run", what_));
  return notes;
}

}  // namespace maxport::huggingface
