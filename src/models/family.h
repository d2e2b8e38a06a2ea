// Model families: what each needs to know to write its parameter map, and the table of all of them.
//
// Adding a family is one source file with one function and a line in families.cc; see docs/adding-a-model.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "huggingface/config_roles.h"
#include "models/parameter_map.h"

namespace maxport::models {

/// What to do with an output head that stands beside a tied embedding.
enum class HeadPolicy {
  kAuto,   ///< drop it when it equals the embedding, otherwise refuse
  kTie,    ///< drop it
  kUntie,  ///< keep it
};

/// The MaxText settings that decide which parameters there are and how they are laid out.
struct MaxTextLayout {
  bool scan_layers = true;
  int64_t param_scan_axis = 1;
  bool use_multimodal = false;
  bool use_audio = true;  ///< counts only together with use_multimodal
  int64_t mtp_num_layers = 0;
  /// weight_dtype=float8_e4m3fn: kernels stay float8 and their block scales are parameters of their own.
  bool float8_weights = false;
  /// Rows of MaxText's vocabulary table; nothing means as many as the Hugging Face configuration says.
  std::optional<int64_t> vocab_size;
  HeadPolicy head = HeadPolicy::kAuto;
};

/// What the source holds, as far as a parameter map may depend on it (spelling of names, fused or separate experts, a
/// tied head). Shapes come from the file headers.
class SourceNames {
 public:
  virtual ~SourceNames() = default;
  virtual bool contains(std::string_view name) const = 0;
  virtual std::optional<Shape> shape(std::string_view name) const = 0;
  /// True when some name begins like this.
  virtual bool contains_prefix(std::string_view prefix) const = 0;
};

struct ModelContext {
  const huggingface::ConfigRoles& config;
  const MaxTextLayout& layout;
  /// Null when planning without weights and on the way back: the map then uses the names of published checkpoints.
  const SourceNames* source = nullptr;

  bool source_has(std::string_view name) const { return source && source->contains(name); }
};

struct Family {
  std::string_view name;                          ///< "llama", "qwen3-moe", ...
  std::string_view title;                         ///< for tables: "Llama 3.1"
  std::span<const std::string_view> model_types;  ///< config.json "model_type" values that mean this family
  bool scanned = true;                            ///< MaxText's model can be scanned
  std::string_view why_not_scanned = {};
  Result<ParameterMap> (*parameter_map)(const ModelContext& context);
  bool predicts_tokens_ahead = false;  ///< takes mtp_num_layers > 0
  /// Decides between families that share a model type; null when the type is enough.
  bool (*fits)(const huggingface::ConfigRoles& config) = nullptr;
  bool keeps_float8 = false;  ///< has a form whose kernels stay float8, with block scales beside them
};

/// Names for sizes that a configuration states: {"emb", "hidden_size"} sets the index emb to that role's value.
struct NamedSize {
  std::string_view index;
  std::string_view role;
};
Result<> read_sizes(const huggingface::ConfigRoles& config, std::initializer_list<NamedSize> sizes,
                    Dimensions& dimensions);

/// What most decoders begin with: the scan axis, and the sizes "vocab", "layers", "emb", "heads", "kv_heads", "dim"
/// (head_dim) and "mlp". The number of layers.
Result<int64_t> start_decoder(const ModelContext& context, ParameterMap& map);

/// kUnsupported when one of the yes-or-no roles is true, because MaxText's layers of `model` have nothing of the kind.
Result<> refuse_true(const huggingface::ConfigRoles& config, std::string_view model,
                     std::initializer_list<std::string_view> roles);

/// The layers of a plain decoder: "decoder.layers" stacked, or "decoder.layers_{layer}" one by one.
LayerGroup decoder_layers(const ModelContext& context, int64_t count, std::string huggingface = "model.layers.{layer}");

/// Decoders whose attention repeats with a period: in each block of `period` layers all attend alike ("local") but the
/// last ("global"). Scanned, MaxText stacks them as "<blocks>.local_layers" over (block, position) and
/// "<blocks>.global_layer" over blocks; local layers after the last whole block go to "decoder.layers_remainder".
struct PeriodicLayers {
  std::vector<LayerGroup> local;
  std::vector<LayerGroup> global;
};
PeriodicLayers periodic_layers(const ModelContext& context, int64_t count, int64_t period, const std::string& blocks,
                               const std::string& huggingface);
/// kUnsupported when "layer_types" lists another order than `period` - 1 times `local`, then `global`.
Result<> check_layer_types(const huggingface::ConfigRoles& config, int64_t period, std::string_view local,
                           std::string_view global);

/// The token table "token_embedder.embedding", with MaxText's padding rows when its vocabulary is larger, and an output
/// head of its own or tied to it.
/// A file with more rows than MaxText's table is an error, unless `truncates` names the reason to drop them.
Result<> add_embedding_and_head(const ModelContext& context, ParameterMap& map, std::string embedding, std::string head,
                                Arithmetic embedding_arithmetic = {}, std::string truncates = {});

/// A source tensor that repeats another: left out, provided it holds the same values. Nothing when the source has none.
/// Without a source (the way back) the map says what to repeat.
void add_equal(const ModelContext& context, ParameterMap& map, std::string kept, std::string dropped,
               std::string reason);

std::span<const Family> all_families();
const Family* find_family(std::string_view name);
/// The family of a config.json by its model_type (and, where that is not enough, other members).
Result<const Family*> family_of(const huggingface::ConfigRoles& config);

/// Builds the map after refusing what the family's MaxText model cannot represent.
Result<ParameterMap> parameter_map(const Family& family, const ModelContext& context);

}  // namespace maxport::models
