// What several families share.
#include "models/family.h"

namespace maxport::models {

Result<> read_sizes(const huggingface::ConfigRoles& config, std::initializer_list<NamedSize> sizes,
                    Dimensions& dimensions) {
  for (const NamedSize& size : sizes) {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t value, config.integer(size.role));
    if (value < 1)
      return fail(ErrorKind::kCorruptData, "{} is {}, expected at least 1", config.source_of(size.role), value);
    // Keeps products of two sizes, which families form, far inside 64 bits; patterns check larger ones.
    constexpr int64_t kMost = int64_t{1} << 31;
    if (value > kMost)
      return fail(ErrorKind::kResourceLimit, "{} is {}, more than the limit of {}", config.source_of(size.role), value,
                  kMost);
    dimensions.set(std::string(size.index), value, size.role);
  }
  return {};
}

Result<> refuse_true(const huggingface::ConfigRoles& config, std::string_view model,
                     std::initializer_list<std::string_view> roles) {
  for (std::string_view role : roles) {
    MAXPORT_ASSIGN_OR_RETURN(const bool stated, config.boolean_or(role, false));
    if (stated)
      return fail(ErrorKind::kUnsupported, "{} is true, but MaxText's {} layers have nothing of the kind",
                  config.source_of(role), model);
  }
  return {};
}

Result<int64_t> start_decoder(const ModelContext& context, ParameterMap& map) {
  map.param_scan_axis = context.layout.param_scan_axis;
  MAXPORT_RETURN_IF_ERROR(read_sizes(context.config,
                                     {{"vocab", "vocab_size"},
                                      {"layers", "num_hidden_layers"},
                                      {"emb", "hidden_size"},
                                      {"heads", "num_attention_heads"},
                                      {"kv_heads", "num_key_value_heads"},
                                      {"dim", "head_dim"},
                                      {"mlp", "intermediate_size"}},
                                     map.dimensions));
  return map.dimensions.get("layers");
}

LayerGroup decoder_layers(const ModelContext& context, int64_t count, std::string huggingface) {
  const bool scanned = context.layout.scan_layers;
  return {scanned ? "decoder.layers" : "decoder.layers_{layer}", std::move(huggingface), 0, {{count, 1}}, scanned};
}

PeriodicLayers periodic_layers(const ModelContext& context, int64_t count, int64_t period, const std::string& blocks,
                               const std::string& huggingface) {
  const bool scanned = context.layout.scan_layers;
  const auto name = [&](const std::string& stacked) { return scanned ? stacked : "decoder.layers_{layer}"; };
  const int64_t whole = count / period, rest = count % period;
  PeriodicLayers layers;
  if (whole > 0) {
    if (period > 1)
      layers.local.push_back(
          {name(blocks + ".local_layers"), huggingface, 0, {{whole, period}, {period - 1, 1}}, scanned});
    layers.global.push_back({name(blocks + ".global_layer"), huggingface, period - 1, {{whole, period}}, scanned});
  }
  if (rest > 0)
    layers.local.push_back(
        {name("decoder.layers_remainder.local_layers"), huggingface, whole * period, {{rest, 1}}, scanned});
  return layers;
}

Result<> check_layer_types(const huggingface::ConfigRoles& config, int64_t period, std::string_view local,
                           std::string_view global) {
  MAXPORT_ASSIGN_OR_RETURN(const auto types, config.layer_types());
  for (size_t layer = 0; layer < types.size(); ++layer) {
    const bool last = static_cast<int64_t>(layer + 1) % period == 0;
    if (types[layer] != (last ? global : local))
      return fail(ErrorKind::kUnsupported,
                  "{}[{}] is \"{}\", but in MaxText's model every {}th layer is {} and the others "
                  "are {}",
                  config.source_of("layer_types"), layer, printable(types[layer]), period, global, local);
  }
  return {};
}

void add_equal(const ModelContext& context, ParameterMap& map, std::string kept, std::string dropped,
               std::string reason) {
  if (context.source != nullptr && !context.source_has(dropped)) return;
  map.ignore(dropped, reason);
  map.equal.push_back({std::move(kept), std::move(dropped), std::move(reason)});
}

Result<> add_embedding_and_head(const ModelContext& context, ParameterMap& map, std::string embedding, std::string head,
                                Arithmetic embedding_arithmetic, std::string truncates) {
  MAXPORT_ASSIGN_OR_RETURN(const int64_t vocab, map.dimensions.get("vocab"));
  const int64_t rows = context.layout.vocab_size.value_or(vocab);
  if (rows < vocab && truncates.empty())
    return fail(ErrorKind::kInvalidArgument,
                "MaxText's vocab_size is {}, but the model has {} tokens; pass vocab_size={} or more", rows, vocab,
                vocab);
  map.dimensions.set("table_rows", rows, "MaxText's vocab_size");
  const std::string tokens = rows < vocab ? "table_rows@0/vocab" : "vocab";
  const std::string table_rows = rows > vocab ? "vocab@0/table_rows" : rows < vocab ? "table_rows" : "vocab";
  const auto complete = [&](Rule& rule) {
    if (rows > vocab) rule.fill = 0.0f;
    if (rows < vocab) rule.drops = truncates;
  };
  complete(map.add("token_embedder.embedding", embedding, fmt::format("{} emb -> {} emb", tokens, table_rows),
                   std::move(embedding_arithmetic)));

  const bool head_in_source = context.source_has(head);
  MAXPORT_ASSIGN_OR_RETURN(huggingface::TiedHead tied,
                           context.config.tied_head(context.source ? head_in_source : true));
  if (context.layout.head != HeadPolicy::kAuto) tied = {context.layout.head == HeadPolicy::kTie, "the --head option"};
  map.notes.push_back(fmt::format("tie_word_embeddings: the output head is {} ({})",
                                  tied.tied ? "tied to the embedding" : "a weight of its own", tied.source));
  if (!tied.tied) {
    complete(map.add("decoder.logits_dense.kernel", head, fmt::format("{} emb -> emb {}", tokens, table_rows)));
  } else if (head_in_source) {
    map.ignore(head, "tied to the token embedding");
    if (context.layout.head == HeadPolicy::kAuto) map.equal.push_back({embedding, head, "the head is tied"});
  }
  return {};
}

}  // namespace maxport::models
