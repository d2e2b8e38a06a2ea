// The models that have a name: for each, its family, its Hugging Face repository and configuration at full size, and
// the settings of its MaxText model file. Facts of MaxText 0.2.5's tables and of the published configurations; where
// those two disagree the published one counts (catalog/README.md lists the cases).
//
// The data is compiled in and read on first use of an entry, so that listing names costs nothing. Thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace maxport::maxtext {

struct CatalogEntry {
  std::string name;           ///< e.g. "qwen3-30b-a3b"
  std::string family;         ///< e.g. "qwen3-moe"; see family_names()
  std::string hf_id;          ///< "Qwen/Qwen3-30B-A3B-Thinking-2507"; empty when nothing is published
  std::string model_file;     ///< the name under which MaxText keeps its model file; usually `name`
  Json hf_config;             ///< as a published config.json, at full size
  Json settings;              ///< MaxText's model file, key to value; empty when MaxText has none
};

/// All names, in the order of the supported-model table: by family, then by size.
std::span<const std::string_view> catalog_names();

/// The families, in that order.
std::span<const std::string_view> family_names();

/// The family of a name without reading its data; empty when the name is unknown.
std::string_view catalog_family(std::string_view name);

/// The entry with that name or alias (case does not matter). kNotFound names the nearest ones.
Result<const CatalogEntry*> find_model(std::string_view name);

/// The family that a Hugging Face configuration belongs to, from `model_type`, `architectures` and, where those do not
/// tell (gemma4 and its small form, for instance), its fields. kUnsupported names what was found.
Result<std::string_view> family_of_config(const Json& hf_config);

/// The entry whose dimensions are all those of `hf_config`, if there is one. Of several with equal dimensions
/// (llama3.1-8b and its Instruct form) the first in the catalog.
Result<std::optional<const CatalogEntry*>> find_by_config(const Json& hf_config);

/// One dimension in which a configuration differs from a model name.
struct DimensionMismatch {
  std::string field;       ///< dotted, in the spelling of config.json
  std::string in_config;   ///< JSON text
  std::string in_catalog;  ///< JSON text
};

/// Compares every field that decides a tensor's shape or number, or the arithmetic of the model.
std::vector<DimensionMismatch> compare_dimensions(const Json& hf_config, const CatalogEntry& entry);

/// kInvalidArgument that lists each mismatch as "config says / model name says", unless `override_model_config`.
Result<> check_dimensions(const Json& hf_config, const CatalogEntry& entry, bool override_model_config);

}  // namespace maxport::maxtext
