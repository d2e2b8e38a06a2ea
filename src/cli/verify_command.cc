// maxport verify: is a checkpoint whole, unchanged, and what its source means?
#include <chrono>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/conversion_options.h"
#include "verify/verify.h"

namespace maxport::cli {
namespace {

struct Request {
  std::string path;
  std::optional<std::string> source;
  std::vector<maxtext::Override> settings;
  bool json = false, help = false;
};

Result<Request> parse(std::span<const std::string> words) {
  Request out;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--help" || word == "-h") {
      out.help = true;
    } else if (word == "--json") {
      out.json = true;
    } else if (word.starts_with("--source=")) {
      out.source = word.substr(9);
    } else if (word == "--source" && i + 1 < words.size()) {
      out.source = words[++i];
    } else if (const size_t equals = word.find('='); !word.starts_with("-") && equals != std::string::npos) {
      out.settings.push_back({word.substr(0, equals), word.substr(equals + 1)});
    } else if (!word.starts_with("-") && out.path.empty()) {
      out.path = word;
    } else {
      return fail(ErrorKind::kInvalidArgument, "unexpected argument \"{}\"; 'maxport verify --help' tells what there is", printable(word));
    }
  }
  if (out.path.empty() && !out.help) return fail(ErrorKind::kInvalidArgument, "which checkpoint? maxport verify /path/to/0");
  return out;
}

/// scan_layers and the like follow from the checkpoint unless they are given.
Result<maxtext::Settings> settings_for(const Request& request) {
  std::vector<maxtext::Override> overrides = request.settings;
  const bool given = std::ranges::any_of(overrides, [](const auto& o) { return o.key == "scan_layers"; });
  if (!given) {
    MAXPORT_ASSIGN_OR_RETURN(const auto checkpoint, orbax::Checkpoint::open(local_storage(), request.path));
    const Json& custom = checkpoint->step_metadata().custom_metadata;
    if (custom.is_object() && custom.contains("scan_layers")) overrides.push_back({"scan_layers", custom["scan_layers"].dump()});
    const bool towers = std::ranges::any_of(checkpoint->leaves(), [](const orbax::CheckpointLeaf& leaf) {
      return leaf.name.starts_with("params.params.vision_encoder.");
    });
    if (towers) overrides.push_back({"use_multimodal", "true"});
  }
  return maxtext::Settings::load(local_storage(), {{}, std::move(overrides), {}});
}

Result<int> run(Console& console, const Request& request) {
  std::unique_ptr<convert::ModelSource> source;
  if (request.source) {
    MAXPORT_ASSIGN_OR_RETURN(const maxtext::Settings settings, settings_for(request));
    MAXPORT_ASSIGN_OR_RETURN(source, convert::ModelSource::open(local_storage(), {*request.source}, settings));
    if (!source->account().good()) return std::unexpected(plan::to_error(source->account()));
  }
  verify::Options options;
  MAXPORT_ASSIGN_OR_RETURN(options.threads, read_threads({}));
  options.source = source.get();
  options.cancelled = stop_requested;
  MAXPORT_ASSIGN_OR_RETURN(const verify::Report report, verify::verify_checkpoint(local_storage(), request.path, options));
  if (request.json) {
    OrderedJson damages = OrderedJson::array();
    for (const verify::Damage& damage : report.damages) damages.push_back({{"leaf", damage.leaf}, {"text", printable(damage.text)}});
    fmt::print("{}\n", OrderedJson{{"good", report.good()}, {"leaves", report.leaves}, {"chunks", report.chunks}, {"bytes", report.bytes},
                                   {"digests_compared", report.recorded}, {"source_compared", report.sourced},
                                   {"warnings", report.warnings}, {"damages", damages}}.dump(1));
  } else {
    for (const verify::Damage& damage : report.damages)
      fmt::print("{}{}{}\n", printable(damage.leaf), damage.leaf.empty() ? "" : ": ", printable(damage.text));
    for (const std::string& warning : report.warnings) console.warn("{}", warning);
    fmt::print("{}: {} leaves, {} chunks, {} read{}{}\n", report.good() ? "good" : "DAMAGED", report.leaves, report.chunks,
               bytes_text(report.bytes), report.recorded ? ", digests compared" : "", report.sourced ? ", every element derived from the source again" : "");
  }
  return report.good() ? 0 : exit_code(ErrorKind::kCorruptData);
}

}  // namespace

int run_verify(std::span<const std::string> words) {
  Console console;
  Result<Request> request = parse(words);
  if (!request) return console.fail(request.error());
  if (request->help) {
    fmt::print("usage: maxport verify CHECKPOINT [--source HF_DIR] [--json] [key=value ...]\n\n"
               "Reads every chunk of a MaxText checkpoint, checks checksums, metadata, markers and the digests that were recorded\n"
               "at conversion. With --source every element is derived from the Hugging Face model again and compared.\n"
               "Exit status 0 when all is well, 5 when anything is damaged.\n");
    return 0;
  }
  install_signal_handlers();
  Result<int> status = run(console, *request);
  return status ? *status : console.fail(status.error());
}

}  // namespace maxport::cli
