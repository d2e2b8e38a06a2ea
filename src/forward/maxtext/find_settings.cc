#include "forward/maxtext/find_settings.h"

#include <algorithm>

#include "maxtext/run_configuration.h"
#include "storage/memory_storage.h"

namespace maxport::forward {
namespace {

constexpr std::string_view kRecordFile = "maxport.json";
constexpr std::string_view kConfigurationFile = "maxtext.yml";

/// What a conversion that recorded this Hugging Face configuration writes beside its checkpoint.
Result<maxtext::RunConfiguration> recorded_configuration(Storage& storage, const std::string& path,
                                                         const CheckpointWeights& weights) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, storage.read_text(path));
  MAXPORT_ASSIGN_OR_RETURN(const Json record, parse_json(text, printable(path)));
  if (!record.is_object() || !record.contains("source_config") || !record.contains("family") ||
      !record["family"].is_string())
    return fail(ErrorKind::kCorruptData, "{}: members \"family\" and \"source_config\" are missing", printable(path));
  MAXPORT_ASSIGN_OR_RETURN(const auto config,
                           huggingface::ConfigRoles::create(record["source_config"], printable(path)));
  const std::string family = record["family"].get<std::string>();
  maxtext::RunConfigurationRequest request{.family = family, .config = config};
  request.head_tied = !weights.contains("decoder.logits_dense.kernel");
  request.scan_layers = weights.scan_layers().value_or(true);
  if (record.contains("param_scan_axis") && record["param_scan_axis"].is_number_integer())
    request.param_scan_axis = record["param_scan_axis"].get<int64_t>();
  if (record.contains("model_name") && record["model_name"].is_string())
    request.model_name = record["model_name"].get<std::string>();
  return maxtext::make_run_configuration(request);
}

/// Settings as if the configuration's files lay beside the checkpoint.
Result<maxtext::Settings> load_configuration(const maxtext::RunConfiguration& configuration,
                                             std::vector<maxtext::Override> overrides) {
  MemoryStorage files;
  MAXPORT_RETURN_IF_ERROR(files.make_directories("models"));
  for (const maxtext::RunConfigurationFile& file : configuration.files)
    MAXPORT_RETURN_IF_ERROR(files.write_text(file.path, file.text));
  return maxtext::Settings::load(files, {std::string(kConfigurationFile), std::move(overrides), {}});
}

}  // namespace

Result<maxtext::Settings> find_settings(Storage& storage, const MaxtextRequest& request,
                                        const CheckpointWeights& weights) {
  const std::string& step = weights.checkpoint().path().step_directory;
  maxtext::SettingsRequest asked;
  asked.overrides = request.settings;
  std::optional<std::string> config = request.config;
  if (!config && !step.empty()) {
    const std::string beside = join_path(parent_path(step), kConfigurationFile);
    MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(beside));
    if (kind == EntryKind::kFile) config = beside;
  }
  if (config) {
    asked.base_file = *config;
    return maxtext::Settings::load(storage, asked);
  }
  const std::string record = join_path(step, kRecordFile);
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage.kind(record));
  if (kind == EntryKind::kFile) {
    MAXPORT_ASSIGN_OR_RETURN(const auto configuration, recorded_configuration(storage, record, weights));
    return load_configuration(configuration, request.settings);
  }
  const bool named =
      std::ranges::any_of(asked.overrides, [](const maxtext::Override& o) { return o.key == "model_name"; });
  if (!named)
    return fail(
        ErrorKind::kInvalidArgument,
        "{}: nothing beside it says which model it is; pass --maxtext_config=maxtext.yml, or model_name=llama3.1-8b "
        "and the like",
        printable(request.path));
  return maxtext::Settings::load(storage, asked);
}

}  // namespace maxport::forward
