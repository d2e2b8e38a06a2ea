#include "models/spelling.h"

#include <algorithm>
#include <array>

namespace maxport::models {
namespace {

/// Where a decoder's embedding, norm and layers may lie.
constexpr std::array<std::string_view, 5> kDecoderPrefixes{"model.language_model.", "language_model.model.",
                                                           "language_model.", "model.", ""};
constexpr std::string_view kEmbedding = "embed_tokens.weight";
constexpr std::string_view kLayers = "layers.0.";

/// Parts beside the decoder, by the last word of their prefix.
constexpr std::array<std::string_view, 5> kTowers{"vision_tower.", "multi_modal_projector.", "visual.", "audio_tower.",
                                                  "embed_vision."};
constexpr std::array<std::string_view, 3> kTowerParents{"", "model.", "thinker."};

std::string respelt(const Spelling& spelling, std::string_view name) {
  for (const auto& [own, other] : spelling)
    if (name.starts_with(own)) return other + std::string(name.substr(own.size()));
  return std::string(name);
}

/// The prefix of the embedding in the family's own spelling; nothing for names that are no such (deepseek4's "embed").
std::optional<std::string> own_prefix(const ParameterMap& map) {
  for (const Rule& rule : map.rules)
    if (rule.maxtext == "token_embedder.embedding" && rule.parts[0].huggingface.ends_with(kEmbedding))
      return rule.parts[0].huggingface.substr(0, rule.parts[0].huggingface.size() - kEmbedding.size());
  return std::nullopt;
}

std::string joined(std::string_view a, std::string_view b) { return std::string(a).append(b); }

Result<> add_decoder(const SourceNames& source, const std::string& own, Spelling& spelling) {
  std::vector<std::string> found;
  for (std::string_view prefix : kDecoderPrefixes)
    if (source.contains(joined(prefix, kEmbedding)) || source.contains_prefix(joined(prefix, kLayers)))
      found.emplace_back(prefix);
  if (found.size() > 1)
    return fail(ErrorKind::kInvalidArgument,
                "the files spell the decoder's names in two ways, under \"{}\" and under \"{}\"; "
                "they seem to be of two models",
                found[0], found[1]);
  if (!found.empty() && found[0] != own) spelling.emplace_back(own, found[0]);
  return {};
}

void add_head(const SourceNames& source, Spelling& spelling) {
  if (source.contains("lm_head.weight")) return;
  for (std::string_view parent : {"language_model.", "model."})
    if (source.contains(joined(parent, "lm_head.weight")))
      spelling.emplace_back("lm_head.", joined(parent, "lm_head."));
}

void add_towers(const SourceNames& source, const ParameterMap& map, Spelling& spelling) {
  const auto family_uses = [&](std::string_view prefix) {
    return std::ranges::any_of(map.rules,
                               [&](const Rule& rule) {
                                 return !rule.parts.empty() && rule.parts[0].huggingface.starts_with(prefix);
                               }) ||
           std::ranges::any_of(map.ignored,
                               [&](const IgnoreRule& rule) { return rule.name_pattern.starts_with(prefix); });
  };
  for (std::string_view tower : kTowers)
    for (std::string_view own : kTowerParents)
      for (std::string_view other : kTowerParents)
        if (own != other && family_uses(joined(own, tower)) && source.contains_prefix(joined(other, tower)) &&
            !source.contains_prefix(joined(own, tower)))
          spelling.emplace_back(joined(own, tower), joined(other, tower));
}

}  // namespace

Result<Spelling> find_spelling(const Family& family, const ModelContext& context) {
  // The family's own spelling, from the map of the published names.
  MAXPORT_ASSIGN_OR_RETURN(const ParameterMap published,
                           family.parameter_map({context.config, context.layout, nullptr}));
  Spelling spelling;
  const auto own = own_prefix(published);
  if (!own) return spelling;
  MAXPORT_RETURN_IF_ERROR(add_decoder(*context.source, *own, spelling));
  add_head(*context.source, spelling);
  add_towers(*context.source, published, spelling);
  std::ranges::stable_sort(spelling, [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  return spelling;
}

void respell(const Spelling& spelling, ParameterMap& map) {
  if (spelling.empty()) return;
  for (Rule& rule : map.rules)
    for (Part& part : rule.parts) part.huggingface = respelt(spelling, part.huggingface);
  for (IgnoreRule& rule : map.ignored) rule.name_pattern = respelt(spelling, rule.name_pattern);
  for (EqualTensors& pair : map.equal) {
    pair.kept = respelt(spelling, pair.kept);
    pair.dropped = respelt(spelling, pair.dropped);
  }
  for (const auto& [own, other] : spelling)
    map.notes.push_back(fmt::format("the files spell \"{}\" as \"{}\"", own, other));
}

bool RespeltNames::contains(std::string_view name) const { return source_.contains(respelt(spelling_, name)); }

std::optional<Shape> RespeltNames::shape(std::string_view name) const {
  return source_.shape(respelt(spelling_, name));
}

bool RespeltNames::contains_prefix(std::string_view prefix) const {
  return source_.contains_prefix(respelt(spelling_, prefix));
}

}  // namespace maxport::models
