// maxport to_maxtext: a drop-in for maxtext.checkpoint_conversion.to_maxtext.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/conversion_options.h"
#include "cli/verify_conversion.h"
#include "convert/to_maxtext.h"
#include "maxtext/arguments.h"
#include "maxtext/run_configuration.h"

namespace maxport::cli {
namespace {

using maxtext::ConversionArguments;
using maxtext::ConversionCommand;
using maxtext::OptionValue;

constexpr std::array kOptions{
    maxtext::ProgramOption{"compression", OptionValue::kRequired, "blosc|lz4|zstd|none",
                           "how chunks are stored (default: blosc; zstd where Zarr v2 is asked for)"},
    maxtext::ProgramOption{"record_sharding", OptionValue::kNone, "",
                           "record jax.Array leaves sharded over the simulated devices, as MaxText does"},
    maxtext::ProgramOption{"head", OptionValue::kRequired, "auto|tie|untie",
                           "what to do with an output head stored beside a tied embedding"},
    maxtext::ProgramOption{"ignore_index", OptionValue::kNone, "",
                           "take every safetensors file of the folder instead of what the index lists"},
    maxtext::ProgramOption{"drop_unused", OptionValue::kNone, "", "leave out source tensors that have no place in MaxText's model"},
    maxtext::ProgramOption{"dry_run", OptionValue::kNone, "", "print the account of the plan and write nothing"},
    maxtext::ProgramOption{"json", OptionValue::kNone, "", "print the account or the report as JSON"},
    maxtext::ProgramOption{"overwrite", OptionValue::kNone, "", "replace a checkpoint, or start an unfinished one over"},
    maxtext::ProgramOption{"threads", OptionValue::kRequired, "N", "worker threads (default: all processors)"},
    maxtext::ProgramOption{"max_memory", OptionValue::kRequired, "SIZE",
                           "memory to stay below, e.g. 48MB (default: 20 MiB and 48 MiB a thread)"},
    maxtext::ProgramOption{"sync", OptionValue::kNone, "", "make everything durable before publishing (default; --nosync: do not)"},
    maxtext::ProgramOption{"verify", OptionValue::kNone, "", "read the checkpoint back, and compare digests and a few logits"},
    maxtext::ProgramOption{"quiet", OptionValue::kNone, "", "print warnings and errors only"},
    maxtext::ProgramOption{"verbose", OptionValue::kNone, "", "print more"},
};

void print_help() {
  fmt::print(
      "usage: maxport to_maxtext [base.yml] [key=value ...] [--option[=value] ...]\n\n"
      "Converts a Hugging Face model directory to a MaxText checkpoint that stock Orbax and MaxText load:\n\n"
      "  maxport to_maxtext base_output_directory=/tmp/out --hf_model_path=/models/Llama-3.1-8B scan_layers=true\n\n"
      "writes /tmp/out/0/items. It takes the arguments of maxtext.checkpoint_conversion.to_maxtext: the path of a\n"
      "base.yml (MaxText's defaults are built in and used where it does not exist), MaxText settings as key=value,\n"
      "and the options below. model_name may be left out: config.json tells which model it is.\n\noptions of MaxText:\n");
  for (const maxtext::OptionHelp& option : maxtext::maxtext_option_help(ConversionCommand::kToMaxtext))
    print_option(option.name + (option.value.empty() ? "" : "=" + option.value), option.text, option.fallback);
  fmt::print("\noptions of maxport:\n");
  print_program_options(kOptions);
  fmt::print(
      "\nsettings that matter here:\n"
      "  scan_layers=true|false, param_scan_axis=N, use_multimodal=true|false, vocab_size=N (rows to pad to),\n"
      "  checkpoint_storage_use_ocdbt, checkpoint_storage_use_zarr3, model_name, override_model_config\n\n"
      "An interrupted conversion is continued by the same command. Exit statuses: docs/exit-codes.md.\n");
}

struct Loaded {
  ConversionArguments arguments;
  maxtext::Settings settings;
};


/// Settings that say how large tensors are.
bool decides_shapes(std::string_view key) {
  static constexpr std::array<std::string_view, 7> kKeys{"head_dim", "num_experts", "shared_experts", "q_lora_rank", "kv_lora_rank",
                                                         "first_num_dense_layers", "decoder_block"};
  return key.starts_with("base_") || std::ranges::find(kKeys, key) != kKeys.end();
}

/// MaxText settings that repeat what config.json says; where they contradict it about shapes, the tensors decide and it is
/// an error.
Result<> check_given_settings(Console& console, const maxtext::Settings& settings, const maxtext::RunConfiguration& derived) {
  std::string differences;
  for (const maxtext::SettingMismatch& mismatch : maxtext::contradicting_settings(settings, derived.settings)) {
    const std::string text = fmt::format("{}={} (from {}), but config.json means {}", mismatch.key, printable(mismatch.given),
                                         mismatch.source, mismatch.derived);
    if (decides_shapes(mismatch.key)) differences += "\n  " + text;
    else console.warn("{}; the run configuration says {}", text, mismatch.derived);
  }
  if (differences.empty()) return {};
  return fail(ErrorKind::kInvalidArgument,
              "settings contradict the model's config.json:{}\nleave them out: they follow from config.json", differences);
}

Result<maxtext::RunConfiguration> run_configuration(const Loaded& loaded, const convert::ModelSource& source) {
  const convert::ModelIdentity& identity = source.identity();
  maxtext::RunConfigurationRequest request{identity.family->name, source.directory().roles()};
  request.head_tied = std::ranges::none_of(source.map().rules, [](const models::Rule& rule) {
    return rule.maxtext == "decoder.logits_dense.kernel";
  });
  request.vocab_size = identity.layout.vocab_size;
  request.scan_layers = identity.layout.scan_layers;
  request.param_scan_axis = identity.layout.param_scan_axis;
  request.use_multimodal = identity.layout.use_multimodal;
  request.use_audio = identity.layout.use_audio && identity.layout.use_multimodal;
  request.mtp_num_layers = identity.layout.mtp_num_layers;
  request.float8_weights = identity.layout.float8_weights;
  MAXPORT_ASSIGN_OR_RETURN(request.weight_block_size, source.directory().roles().weight_block_size());
  request.model_name = loaded.settings.model_name();
  if (!request.model_name) request.found = identity.entry;
  return maxtext::make_run_configuration(request);
}

Result<convert::ToMaxtextOptions> read_options(const ConversionArguments& arguments, const maxtext::Settings& settings) {
  convert::ToMaxtextOptions options;
  MAXPORT_ASSIGN_OR_RETURN(const auto output, settings.optional_text("base_output_directory"));
  if (!output || output->empty())
    return fail(ErrorKind::kInvalidArgument, "base_output_directory is missing: pass base_output_directory=/path/to/output");
  MAXPORT_ASSIGN_OR_RETURN(options.base_output_directory, local_path(*output));
  options.save_dtype = *dtype_from_name(arguments.save_dtype);
  MAXPORT_ASSIGN_OR_RETURN(options.use_ocdbt, settings.boolean("checkpoint_storage_use_ocdbt"));
  MAXPORT_ASSIGN_OR_RETURN(options.use_zarr3, settings.boolean("checkpoint_storage_use_zarr3"));
  options.devices = arguments.simulated_cpu_devices_count;
  options.record_sharding = arguments.option_is_on("record_sharding");
  options.overwrite = arguments.option_is_on("overwrite");
  options.sync = !arguments.options.contains("sync") || arguments.option_is_on("sync");
  MAXPORT_ASSIGN_OR_RETURN(options.threads, read_threads(arguments));
  MAXPORT_ASSIGN_OR_RETURN(options.max_memory, read_max_memory(arguments));
  MAXPORT_ASSIGN_OR_RETURN(options.timestamp_nsecs, current_timestamp());
  const std::string fallback = options.use_zarr3 ? "blosc" : "zstd";
  const std::string compression = arguments.option_value("compression").value_or(fallback);
  if (compression == "blosc") options.compression = zarr::Compression::kBlosc;
  else if (compression == "lz4") options.compression = zarr::Compression::kLz4;
  else if (compression == "zstd") options.compression = zarr::Compression::kZstd;
  else if (compression == "none") options.compression = zarr::Compression::kNone;
  else return fail(ErrorKind::kInvalidArgument, "--compression is \"{}\"; blosc, lz4, zstd and none exist", printable(compression));
  options.cancelled = stop_requested;
  return options;
}

Result<convert::ModelRequest> read_request(const ConversionArguments& arguments) {
  convert::ModelRequest request;
  if (!arguments.hf_model_path)
    return fail(ErrorKind::kInvalidArgument,
                "--hf_model_path is missing: pass the local folder of the Hugging Face model (nothing is downloaded)");
  request.folder = *arguments.hf_model_path;
  request.ignore_index = arguments.option_is_on("ignore_index");
  request.drop_unused = arguments.option_is_on("drop_unused");
  const std::string head = arguments.option_value("head").value_or("auto");
  if (head == "tie") request.head = models::HeadPolicy::kTie;
  else if (head == "untie") request.head = models::HeadPolicy::kUntie;
  else if (head != "auto") return fail(ErrorKind::kInvalidArgument, "--head is \"{}\"; auto, tie and untie exist", printable(head));
  return request;
}

void print_account(const convert::ModelSource& source, const convert::ToMaxtext* conversion, bool json) {
  const plan::Account& account = source.account();
  OrderedJson memory;
  if (conversion != nullptr)
    if (auto forecast = conversion->forecast())
      memory = {{"peak_memory", forecast->total}, {"threads", forecast->threads}, {"whole_bands", forecast->whole_bands}};
  if (json) {
    OrderedJson out{{"family", source.identity().family->name}, {"account", plan::to_json(account)}, {"memory", memory},
                    {"plan", plan::to_json(source.plan(), false)}};
    if (conversion != nullptr) out["chunks"] = conversion->chunk_count();
    fmt::print("{}\n", out.dump(1));
    return;
  }
  fmt::print("family           {}\n", source.identity().family->title);
  fmt::print("source tensors   {} used, {} ignored by a rule\n", account.tensors_used, account.ignored.size());
  for (const plan::IgnoredTensor& tensor : account.ignored)
    fmt::print("  ignored        {}: {}\n", printable(tensor.name), tensor.reason);
  fmt::print("MaxText leaves   {} of {} filled, {} elements ({} of them padding)\n", account.leaves_filled,
             source.plan().leaves.size(), account.elements, account.elements_filled_in);
  if (conversion != nullptr) {
    fmt::print("output           {} in {} chunks before compression\n", bytes_text(conversion->raw_bytes()), conversion->chunk_count());
    if (!memory.empty())
      fmt::print("peak memory      {} with {} threads\n", bytes_text(memory["peak_memory"].get<uint64_t>()), memory["threads"].get<int>());
  }
  for (const plan::Fault& fault : account.faults)
    fmt::print("fault            {}: {}\n", plan::fault_name(fault.kind), printable(fault.text));
}

void log_start(Console& console, const Loaded& loaded, const convert::ModelSource& source) {
  for (const std::string& note : loaded.settings.notes()) console.info("{}", note);
  for (const std::string& warning : source.directory().warnings()) console.warn("{}", warning);
  for (const maxtext::ConfigMismatch& mismatch : source.identity().mismatches)
    console.warn("{}: config.json says {}, the model name means {}; config.json counts", mismatch.field, mismatch.in_config, mismatch.in_catalog);
  for (const std::string& note : source.map().notes) console.info("{}", note);
  for (const plan::IgnoredTensor& tensor : source.account().ignored)
    console.detail("{} is left out: {}", printable(tensor.name), tensor.reason);
  if (!source.account().ignored.empty())
    console.info("{} source tensors are left out by rule, e.g. {}: {}", source.account().ignored.size(),
                 printable(source.account().ignored[0].name), source.account().ignored[0].reason);
  const convert::ModelIdentity& identity = source.identity();
  console.info("Model: {}, {} layers, save_dtype {}", identity.entry ? identity.entry->name : identity.family->title,
               identity.layout.scan_layers ? "scanned" : "unscanned", loaded.arguments.save_dtype);
  console.info("{}", loaded.arguments.lazy_load_tensors ? "Lazy loading ENABLED" : "Lazy loading DISABLED: tensors are streamed all the same");
}

Result<int> convert_model(Console& console, const Loaded& loaded) {
  const auto start = std::chrono::steady_clock::now();
  const auto minutes = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 60; };
  MAXPORT_ASSIGN_OR_RETURN(const convert::ModelRequest request, read_request(loaded.arguments));
  MAXPORT_ASSIGN_OR_RETURN(convert::ToMaxtextOptions options, read_options(loaded.arguments, loaded.settings));
  MAXPORT_ASSIGN_OR_RETURN(auto source, convert::ModelSource::open(local_storage(), request, loaded.settings));
  const bool json = loaded.arguments.option_is_on("json");
  if (!source->account().good()) {
    if (loaded.arguments.option_is_on("dry_run")) print_account(*source, nullptr, json);
    return std::unexpected(plan::to_error(source->account()));
  }
  MAXPORT_ASSIGN_OR_RETURN(const maxtext::RunConfiguration configuration, run_configuration(loaded, *source));
  MAXPORT_RETURN_IF_ERROR(check_given_settings(console, loaded.settings, configuration));
  for (const maxtext::RunConfigurationFile& file : configuration.files) options.side_files.emplace_back(file.path, file.text);
  MAXPORT_ASSIGN_OR_RETURN(auto conversion, convert::ToMaxtext::prepare(local_storage(), *source, options));
  if (loaded.arguments.option_is_on("dry_run")) {
    print_account(*source, conversion.get(), json);
    return 0;
  }
  log_start(console, loaded, *source);
  for (const std::string& note : configuration.notes) console.warn("{}", note);
  const bool one = options.devices == 1;
  if (one) console.info("Single device: Skip sharding");
  else console.info("Shard weights across {} devices", options.devices);
  const double before = minutes();
  Result<convert::ToMaxtextReport> report = [&] {
    const ProgressDisplay display(console, "converting", conversion->raw_bytes(), [&] { return conversion->progress().bytes_done.load(); });
    if (one && loaded.arguments.lazy_load_tensors) console.info("Single device: Materializing lazy weights");
    return conversion->run();
  }();
  if (!report) return std::unexpected(std::move(report).error());
  console.info("Elapse for lazy weight materialization: {:.2f} min", minutes() - before);
  if (report->segments_resumed > 0)
    console.info("{} of {} segments were there from an earlier run", report->segments_resumed, report->segments);
  console.info("{} leaves, {} in {} chunks, stored as {}", report->leaves, bytes_text(report->raw_bytes), report->chunks,
               bytes_text(conversion->progress().bytes_written));
  console.info("Conversion complete. Checkpoint saved to {}", report->step_directory);
  if (loaded.arguments.option_is_on("verify")) MAXPORT_RETURN_IF_ERROR(verify_written_checkpoint(console, *report, *loaded.arguments.hf_model_path, options.threads));
  console.info("Overall Elapse: {:.2f} min", minutes());
  console.info("Peak Memory: {:.2f} GB", static_cast<double>(peak_memory()) / 1e9);
  if (json)
    fmt::print("{}\n", OrderedJson{{"step_directory", report->step_directory}, {"leaves", report->leaves}, {"chunks", report->chunks},
                                   {"raw_bytes", report->raw_bytes}, {"segments", report->segments},
                                   {"segments_resumed", report->segments_resumed}, {"seconds", minutes() * 60},
                                   {"peak_memory", peak_memory()}}.dump(1));
  return 0;
}

Result<Loaded> load(std::span<const std::string> words) {
  Loaded out;
  MAXPORT_ASSIGN_OR_RETURN(out.arguments, maxtext::parse_conversion_arguments(ConversionCommand::kToMaxtext, words, kOptions));
  if (out.arguments.help) return out;
  MAXPORT_ASSIGN_OR_RETURN(out.settings, maxtext::Settings::load(local_storage(), settings_request(out.arguments)));
  return out;
}

}  // namespace

int run_to_maxtext(std::span<const std::string> words) {
  Result<Loaded> loaded = load(words);
  if (!loaded) return Console().fail(loaded.error());
  if (loaded->arguments.help) {
    print_help();
    return 0;
  }
  Console console(verbosity(loaded->arguments));
  install_signal_handlers();
  Result<int> status = convert_model(console, *loaded);
  if (!status && status.error().kind() == ErrorKind::kInterrupted)
    console.warn("Stopped. The same command, run again, resumes where this one ended; nothing was published.");
  return status ? *status : console.fail(status.error());
}

}  // namespace maxport::cli
