// For developers and for the interoperability tests: run configurations on the command line.
//
//   maxtext_tool run_configuration CONFIG.json OUTPUT key=value...   writes maxtext.yml (and models/) into OUTPUT
//   maxtext_tool config NAME                                         the catalog's config.json of a model
//   maxtext_tool names                                               every name in the catalog and its family
//
// Keys: family, model_name, scan_layers, use_multimodal, use_audio, vocab_size, float8_weights.
#include <cstdio>

#include "maxtext/catalog.h"
#include "maxtext/run_configuration.h"

namespace maxport::maxtext {
namespace {

/// Reads key=value words as MaxText settings; `family` and `float8_weights` are the tool's own.
Result<Settings> read_settings(std::span<char*> words, std::string& family, bool& float8_weights) {
  SettingsRequest request;
  for (const std::string word : words) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "family") {
      family = value;
    } else if (key == "float8_weights") {
      float8_weights = value == "true";
    } else {
      request.overrides.push_back({key, value});
    }
  }
  return Settings::load(local_storage(), request);
}

Result<> write(const RunConfiguration& configuration, const std::string& folder) {
  MAXPORT_RETURN_IF_ERROR(local_storage().make_directories(join_path(folder, "models")));
  for (const RunConfigurationFile& file : configuration.files)
    MAXPORT_RETURN_IF_ERROR(local_storage().write_text(join_path(folder, file.path), file.text));
  for (const std::string& note : configuration.notes) fmt::print("{}\n", note);
  return {};
}

Result<> run_configuration(const std::string& path, const std::string& folder, std::span<char*> words) {
  MAXPORT_ASSIGN_OR_RETURN(std::string text, local_storage().read_text(path));
  MAXPORT_ASSIGN_OR_RETURN(Json json, parse_json(text, path));
  MAXPORT_ASSIGN_OR_RETURN(auto config, huggingface::ConfigRoles::create(std::move(json), path));
  std::string family;
  bool float8_weights = false;
  MAXPORT_ASSIGN_OR_RETURN(Settings settings, read_settings(words, family, float8_weights));
  if (settings.model_name()) family = catalog_family(*settings.model_name());
  MAXPORT_ASSIGN_OR_RETURN(auto tied, config.tied_head(true));
  RunConfigurationRequest request{.family = family, .config = config, .head_tied = tied.tied,
                                  .float8_weights = float8_weights, .model_name = settings.model_name()};
  MAXPORT_ASSIGN_OR_RETURN(request.scan_layers, settings.boolean("scan_layers"));
  MAXPORT_ASSIGN_OR_RETURN(request.use_multimodal, settings.boolean("use_multimodal"));
  MAXPORT_ASSIGN_OR_RETURN(request.use_audio, settings.boolean("use_audio"));
  if (settings.given("vocab_size")) {
    MAXPORT_ASSIGN_OR_RETURN(request.vocab_size, settings.integer("vocab_size"));
  }
  MAXPORT_ASSIGN_OR_RETURN(auto made, make_run_configuration(request));
  return write(made, folder);
}

Result<> run(std::span<char*> words) {
  const std::string_view command = words.empty() ? "" : words[0];
  if (command == "names" && words.size() == 1) {
    for (std::string_view name : catalog_names()) fmt::print("{} {}\n", name, catalog_family(name));
    return {};
  }
  if (command == "config" && words.size() == 2) {
    MAXPORT_ASSIGN_OR_RETURN(const CatalogEntry* entry, find_model(words[1]));
    fmt::print("{}\n", entry->hf_config.dump(1));
    return {};
  }
  if (command == "run_configuration" && words.size() >= 3) return run_configuration(words[1], words[2], words.subspan(3));
  return fail(ErrorKind::kInvalidArgument,
              "usage: maxtext_tool run_configuration CONFIG OUTPUT key=value... | config NAME | names");
}

}  // namespace
}  // namespace maxport::maxtext

int main(int count, char** words) {
  const auto done = maxport::maxtext::run({words + 1, words + count});
  if (done) return 0;
  std::fprintf(stderr, "maxtext_tool: %s\n", done.error().message().c_str());
  return maxport::exit_code(done.error().kind());
}
