// maxport to_huggingface: a drop-in for maxtext.checkpoint_conversion.to_huggingface.
#include <array>
#include <chrono>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/conversion_options.h"
#include "cli/verify_conversion.h"
#include "convert/to_huggingface.h"
#include "maxtext/arguments.h"

namespace maxport::cli {
namespace {

using maxtext::ConversionArguments;
using maxtext::ConversionCommand;
using maxtext::OptionValue;

constexpr std::array kOptions{
    maxtext::ProgramOption{"max_shard_size", OptionValue::kRequired, "SIZE", "largest weight file, e.g. 5GB (default: 50GB, as transformers)"},
    maxtext::ProgramOption{"as_text_model", OptionValue::kNone, "", "write the decoder of a multimodal model as a text model of its own"},
    maxtext::ProgramOption{"dry_run", OptionValue::kNone, "", "say what would be written and write nothing"},
    maxtext::ProgramOption{"json", OptionValue::kNone, "", "print the report as JSON"},
    maxtext::ProgramOption{"overwrite", OptionValue::kNone, "", "replace the model folder if it is there"},
    maxtext::ProgramOption{"sync", OptionValue::kNone, "", "make everything durable before publishing (default; --nosync: do not)"},
    maxtext::ProgramOption{"threads", OptionValue::kRequired, "N", "worker threads (default: all processors)"},
    maxtext::ProgramOption{"max_memory", OptionValue::kRequired, "SIZE", "memory to stay below (default: 20 MiB and 48 MiB a thread)"},
    maxtext::ProgramOption{"verify", OptionValue::kNone, "", "read the model back and compare it with a second conversion, and the checkpoint with its digests"},
    maxtext::ProgramOption{"quiet", OptionValue::kNone, "", "print warnings and errors only"},
    maxtext::ProgramOption{"verbose", OptionValue::kNone, "", "print more"},
};

void print_help() {
  fmt::print(
      "usage: maxport to_huggingface [base.yml] [key=value ...] [--option[=value] ...]\n\n"
      "Converts a MaxText checkpoint to a Hugging Face model directory:\n\n"
      "  maxport to_huggingface load_parameters_path=/ckpt/0/items base_output_directory=/tmp/hf weight_dtype=bfloat16\n\n"
      "The model's configuration is the config.json below --hf_model_path, else the one that maxport recorded when it\n"
      "made the checkpoint, else that of model_name. Tokenizer and generation files are copied from --hf_model_path.\n"
      "weight_dtype is float32 unless given, as in MaxText.\n\noptions of MaxText:\n");
  for (const maxtext::OptionHelp& option : maxtext::maxtext_option_help(ConversionCommand::kToHuggingface))
    print_option(option.name + (option.value.empty() ? "" : "=" + option.value), option.text, option.fallback);
  fmt::print("\noptions of maxport:\n");
  print_program_options(kOptions);
  fmt::print(
      "\nsettings that matter here:\n"
      "  load_parameters_path, base_output_directory, weight_dtype, scan_layers (found in the checkpoint when not given),\n"
      "  use_multimodal (likewise), model_name, override_model_config\n\nExit statuses: docs/exit-codes.md.\n");
}

Result<convert::ToHuggingfaceOptions> read_options(const ConversionArguments& arguments, const maxtext::Settings& settings) {
  convert::ToHuggingfaceOptions options;
  MAXPORT_ASSIGN_OR_RETURN(const auto output, settings.optional_text("base_output_directory"));
  if (!output || output->empty())
    return fail(ErrorKind::kInvalidArgument, "base_output_directory is missing: pass base_output_directory=/path/to/model");
  MAXPORT_ASSIGN_OR_RETURN(options.output, local_path(*output));
  while (options.output.size() > 1 && options.output.ends_with('/')) options.output.pop_back();
  MAXPORT_ASSIGN_OR_RETURN(const std::string dtype, settings.text("weight_dtype"));
  const auto found = dtype_from_name(dtype);
  if (!found || !is_floating(*found))
    return fail(ErrorKind::kInvalidArgument, "weight_dtype is \"{}\"; float32, bfloat16 and float16 make sense, and float8_e4m3fn for float8 checkpoints", printable(dtype));
  options.weight_dtype = *found;
  options.max_shard_size = arguments.option_value("max_shard_size").value_or(options.max_shard_size);
  options.hf_folder = arguments.hf_model_path;
  options.as_text_model = arguments.option_is_on("as_text_model");
  options.sync = !arguments.options.contains("sync") || arguments.option_is_on("sync");
  options.overwrite = arguments.option_is_on("overwrite");
  MAXPORT_ASSIGN_OR_RETURN(options.threads, read_threads(arguments));
  MAXPORT_ASSIGN_OR_RETURN(options.max_memory, read_max_memory(arguments));
  options.cancelled = stop_requested;
  return options;
}

Result<convert::CheckpointRequest> read_request(const ConversionArguments& arguments, const maxtext::Settings& settings) {
  convert::CheckpointRequest request;
  MAXPORT_ASSIGN_OR_RETURN(const auto path, settings.optional_text("load_parameters_path"));
  if (!path || path->empty())
    return fail(ErrorKind::kInvalidArgument, "load_parameters_path is missing: pass load_parameters_path=/path/to/0/items");
  MAXPORT_ASSIGN_OR_RETURN(request.path, local_path(*path));
  request.hf_folder = arguments.hf_model_path;
  request.ignore_model_name = arguments.override_model_architecture;
  return request;
}

void report_end(Console& console, const convert::ToHuggingfaceReport& report, double seconds, bool json) {
  OrderedJson inexact = OrderedJson::array();
  for (const convert::InexactStep& step : report.inexact) {
    console.info("{}: {} tensors may differ from the original by up to {}, e.g. {} (--json names all)", step.step,
                 step.tensors.size(), step.bound, step.tensors.front());
    inexact.push_back({{"step", step.step}, {"bound", step.bound}, {"tensors", step.tensors}});
  }
  if (report.segments_resumed > 0)
    console.info("{} of {} segments were there from an earlier run", report.segments_resumed, report.segments);
  for (const std::string& file : report.side_files) console.detail("copied {}", printable(file));
  console.info("{} tensors, {} in {} file{}", report.tensors, bytes_text(report.bytes), report.files, report.files == 1 ? "" : "s");
  console.info("Conversion complete. Model saved to {}", report.folder);
  console.info("Overall Elapse: {:.2f} min", seconds / 60);
  console.info("Peak Memory: {:.2f} GB", static_cast<double>(peak_memory()) / 1e9);
  if (json)
    fmt::print("{}\n", OrderedJson{{"folder", report.folder}, {"tensors", report.tensors}, {"files", report.files},
                                   {"bytes", report.bytes}, {"inexact", inexact}, {"seconds", seconds}, {"peak_memory", peak_memory()}}.dump(1));
}

Result<int> convert_checkpoint(Console& console, const ConversionArguments& arguments, const maxtext::Settings& settings) {
  const auto start = std::chrono::steady_clock::now();
  MAXPORT_ASSIGN_OR_RETURN(const convert::CheckpointRequest request, read_request(arguments, settings));
  MAXPORT_ASSIGN_OR_RETURN(convert::ToHuggingfaceOptions options, read_options(arguments, settings));
  MAXPORT_ASSIGN_OR_RETURN(auto source, convert::CheckpointSource::open(local_storage(), request, settings));
  if (source->layout().float8_weights && !settings.given("weight_dtype")) options.weight_dtype = DType::kFloat8E4m3fn;
  for (const std::string& note : settings.notes()) console.info("{}", note);
  for (const std::string& note : source->checkpoint().notes()) console.warn("{}", note);
  for (const std::string& note : source->notes()) console.info("{}", note);
  for (const std::string& note : source->map().notes) console.info("{}", note);
  console.info("Model: {}, {} layers, configuration from {}", source->family().title,
               source->layout().scan_layers ? "scanned" : "unscanned", printable(source->config_source()));
  MAXPORT_ASSIGN_OR_RETURN(auto conversion, convert::ToHuggingface::prepare(local_storage(), *source, options));
  if (arguments.option_is_on("dry_run")) {
    const engine::MemoryForecast memory = conversion->forecast();
    fmt::print("{} tensors, {}; peak memory {} with {} threads\n", conversion->tensors().size(), bytes_text(conversion->bytes()),
               bytes_text(memory.total), memory.threads);
    return 0;
  }
  Result<convert::ToHuggingfaceReport> report = [&] {
    const ProgressDisplay display(console, "converting", conversion->progress().bytes_total, [&] { return conversion->progress().bytes_done.load(); });
    return conversion->run();
  }();
  if (!report) return std::unexpected(std::move(report).error());
  if (arguments.option_is_on("verify")) MAXPORT_RETURN_IF_ERROR(verify_written_model(console, *source, *conversion, options.threads));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report_end(console, *report, seconds, arguments.option_is_on("json"));
  return 0;
}

}  // namespace

int run_to_huggingface(std::span<const std::string> words) {
  Result<ConversionArguments> arguments = maxtext::parse_conversion_arguments(ConversionCommand::kToHuggingface, words, kOptions);
  if (!arguments) return Console().fail(arguments.error());
  if (arguments->help) {
    print_help();
    return 0;
  }
  Result<maxtext::Settings> settings = maxtext::Settings::load(local_storage(), settings_request(*arguments));
  if (!settings) return Console().fail(settings.error());
  Console console(verbosity(*arguments));
  install_signal_handlers();
  Result<int> status = convert_checkpoint(console, *arguments, *settings);
  if (!status && status.error().kind() == ErrorKind::kInterrupted)
    console.warn("Stopped. The same command, run again, resumes where this one ended; nothing was published.");
  return status ? *status : console.fail(status.error());
}

}  // namespace maxport::cli
