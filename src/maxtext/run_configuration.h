// The run configuration: a YAML with every MaxText setting that a converted model needs, so that nothing has to be guessed
// when it is trained or run.
//
// Settings follow from the family and the Hugging Face configuration alone. Some code of MaxText 0.2.5 looks at
// model_name instead of a setting (the queries' scale of gemma3, the norm of olmo3's queries, the routing of deepseek3);
// for those families a name is part of the configuration. MaxText then merges its own model file over the YAML, and
// looks for it in models/ beside the YAML first: where the model's sizes differ from that file, a file of the same name
// is written there too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "huggingface/config_roles.h"
#include "maxtext/settings.h"

namespace maxport::maxtext {

struct CatalogEntry;

struct RunConfigurationRequest {
  std::string_view family;  ///< "llama", "qwen3-moe", ...; see catalog.h
  const huggingface::ConfigRoles& config;
  bool head_tied = false;             ///< output head and embedding are one weight
  std::optional<int64_t> vocab_size = {};  ///< rows of MaxText's table where it is padded
  bool scan_layers = true;
  int64_t param_scan_axis = 1;
  bool use_multimodal = false;
  bool use_audio = false;
  int64_t mtp_num_layers = 0;
  /// Weights stay float8 with block scales (weight_dtype=float8_e4m3fn).
  bool float8_weights = false;
  int64_t weight_block_size = 128;  ///< edge of the blocks that share a scale
  std::optional<std::string> model_name = {};      ///< as given on the command line
  /// The entry that find_by_config gives for `config`, where the caller has asked already.
  std::optional<const CatalogEntry*> found = {};
  std::optional<std::string> tokenizer_path = {};  ///< folder or repository of the tokenizer
};

struct RunConfigurationFile {
  std::string path;  ///< relative: "maxtext.yml", "models/gemma3-4b.yml"
  std::string text;
};

struct RunConfiguration {
  /// Architecture and layout, in the order of the file; without model_name, paths and the like.
  OrderedJson settings;
  std::optional<std::string> model_name;
  std::vector<RunConfigurationFile> files;
  /// What MaxText cannot represent and computes otherwise, one sentence each.
  std::vector<std::string> notes;
};

/// The settings alone, and `notes` as above. kUnsupported for a family that MaxText has no decoder for.
Result<OrderedJson> derive_settings(const RunConfigurationRequest& request, std::vector<std::string>& notes);

Result<RunConfiguration> make_run_configuration(const RunConfigurationRequest& request);

/// A setting that was given explicitly and differs from what the model needs.
struct SettingMismatch {
  std::string key;
  std::string given;    ///< JSON text
  std::string derived;  ///< JSON text
  std::string source;   ///< where it was given
};

/// Compares what the command line and the environment set with what follows from the model.
std::vector<SettingMismatch> contradicting_settings(const Settings& settings, const OrderedJson& derived);

}  // namespace maxport::maxtext
