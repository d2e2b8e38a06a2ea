// maxport plan: the whole conversion of a named model at full size, without any weights.
#include <array>
#include <chrono>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/conversion_options.h"
#include "convert/model_source.h"
#include "engine/grid.h"
#include "maxtext/arguments.h"
#include "maxtext/sharding.h"

namespace maxport::cli {
namespace {

using maxtext::OptionValue;

constexpr std::array kOptions{
    maxtext::ProgramOption{"json", OptionValue::kNone, "", "print the plan as JSON: leaves, tensors, and every piece"},
};

struct Storage {
  uint64_t elements = 0, chunks = 0, largest_band = 0;
};

/// What the chunk grid of bfloat16 leaves would be.
Storage storage_of(const plan::Plan& plan, int devices) {
  Storage out;
  const int64_t chunk_bytes = engine::chunk_bytes_for(plan);
  for (const plan::Leaf& leaf : plan.leaves) {
    const auto grid = engine::choose_grid(plan, leaf, {chunk_bytes, 2, maxtext::shard_axis(leaf.shape, devices).value_or(-1), devices});
    out.elements += static_cast<uint64_t>(element_count(leaf.shape));
    out.chunks += static_cast<uint64_t>(element_count(grid.counts(leaf.shape)));
    const std::vector<int64_t> origin(leaf.shape.size(), 0);
    out.largest_band = std::max(out.largest_band, static_cast<uint64_t>(element_count(grid.band_box(leaf.shape, origin).shape)) * 2);
  }
  return out;
}

Result<int> run(const maxtext::ConversionArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  MAXPORT_ASSIGN_OR_RETURN(const maxtext::Settings settings, maxtext::Settings::load(local_storage(), settings_request(arguments)));
  if (!settings.model_name())
    return fail(ErrorKind::kInvalidArgument, "which model? maxport plan model_name=llama3.1-70b; 'maxport models' lists the names");
  MAXPORT_ASSIGN_OR_RETURN(const maxtext::CatalogEntry* entry, maxtext::find_model(*settings.model_name()));
  MAXPORT_ASSIGN_OR_RETURN(const auto config, huggingface::ConfigRoles::create(entry->hf_config, "the configuration of " + entry->name));
  MAXPORT_ASSIGN_OR_RETURN(const convert::ModelIdentity identity, convert::identify(config, settings));
  MAXPORT_ASSIGN_OR_RETURN(const auto map, models::parameter_map(*identity.family, {config, identity.layout, nullptr}));
  MAXPORT_ASSIGN_OR_RETURN(const plan::Plan plan, plan::build(map));
  MAXPORT_ASSIGN_OR_RETURN(const auto faults, plan::check_cover(plan));
  if (arguments.option_is_on("json")) {
    fmt::print("{}\n", plan::to_json(plan, true).dump(1));
    return faults.empty() ? 0 : 1;
  }
  const Storage storage = storage_of(plan, arguments.simulated_cpu_devices_count);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("model            {} ({}, {})\n", entry->name, identity.family->title, identity.layout.scan_layers ? "scanned" : "unscanned");
  fmt::print("source tensors   {}\n", plan.tensors.size());
  fmt::print("MaxText leaves   {}, {} elements, {} in bfloat16\n", plan.leaves.size(), storage.elements, bytes_text(storage.elements * 2));
  fmt::print("pieces           {}\n", plan.links.size());
  fmt::print("cover            {}\n", faults.empty() ? "every element exactly once, on both sides" : "FAULTS");
  for (const plan::Fault& fault : faults) fmt::print("fault            {}: {}\n", plan::fault_name(fault.kind), fault.text);
  fmt::print("chunks           {} for {} devices, {} of source held at once a thread\n", storage.chunks,
             arguments.simulated_cpu_devices_count, bytes_text(storage.largest_band));
  fmt::print("planned in       {:.2f} s with {} of memory\n", seconds, bytes_text(peak_memory()));
  return faults.empty() ? 0 : 1;
}

}  // namespace

int run_plan(std::span<const std::string> words) {
  Console console;
  auto arguments = maxtext::parse_conversion_arguments(maxtext::ConversionCommand::kToMaxtext, words, kOptions);
  if (!arguments) return console.fail(arguments.error());
  if (arguments->help) {
    fmt::print("usage: maxport plan model_name=NAME [scan_layers=true|false] [--simulated_cpu_devices_count=N] [--json] [key=value ...]\n\n"
               "Plans the conversion of a named model at full size, without any weights: which tensors become which leaves, the proof\n"
               "that every element has its place, the chunks and the memory of a conversion.\n");
    return 0;
  }
  Result<int> status = run(*arguments);
  return status ? *status : console.fail(status.error());
}

}  // namespace maxport::cli
