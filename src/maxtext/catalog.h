// The models that have a name: for each, its family, its Hugging Face repository and configuration at full size, and
// the settings of its MaxText model file. Facts of MaxText 0.2.5's tables and of the published configurations; where
// those two disagree the published one counts (catalog/README.md lists the cases).
//
// The data is compiled in and read on first use of an entry, so that listing names costs nothing. Entries live as long
// as the program. Thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "huggingface/config_roles.h"

namespace maxport::maxtext {

struct CatalogEntry {
  std::string name;    ///< e.g. "qwen3-30b-a3b"
  std::string family;  ///< e.g. "qwen3-moe"; see family_names()
  std::string hf_id;   ///< "Qwen/Qwen3-30B-A3B-Thinking-2507"; empty when nothing is published
  Json hf_config;      ///< as a published config.json, at full size
  Json settings;       ///< MaxText's model file, key to value
};

/// All names, in the order of the supported-model table: by family, then by size.
std::span<const std::string_view> catalog_names();

/// The families, in that order.
std::span<const std::string_view> family_names();

/// The family of a name without reading its data; empty when the name is unknown.
std::string_view catalog_family(std::string_view name);

/// The entry with that name; case does not matter. kNotFound names the nearest ones.
Result<const CatalogEntry*> find_model(std::string_view name);

/// One field in which a configuration differs from a model name.
struct ConfigMismatch {
  std::string field;        ///< dotted, by its usual name: "text_config.hidden_size"
  std::string in_config;    ///< JSON text
  std::string in_catalog;   ///< JSON text
  bool decides_shapes = true;  ///< false when only the arithmetic differs (norm epsilon, rope base, ...)
};

/// Compares what both configurations say. Vocabularies that differ by less than 256 rows count as equal: both sides pad
/// them. Vision and audio parts are compared where `config` has them.
Result<std::vector<ConfigMismatch>> compare_with_catalog(const huggingface::ConfigRoles& config,
                                                         const CatalogEntry& entry);

/// kInvalidArgument that lists each mismatch that decides shapes as "config says / model name says", unless
/// `override_model_config`. The others are returned, for a warning.
Result<std::vector<ConfigMismatch>> check_model_name(const huggingface::ConfigRoles& config, const CatalogEntry& entry,
                                                     bool override_model_config);

/// The entry that agrees with `config` in everything that decides shapes; of several (llama3.1-8b and its Instruct form)
/// the one that also agrees in the arithmetic, then the first in the catalog. Nothing when none does.
Result<const CatalogEntry*> find_by_config(const huggingface::ConfigRoles& config);

}  // namespace maxport::maxtext
