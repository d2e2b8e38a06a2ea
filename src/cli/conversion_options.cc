#include "cli/conversion_options.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>

namespace maxport::cli {
namespace {

int available_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

Result<int> read_threads(const maxtext::ConversionArguments& arguments) {
  const auto text = arguments.option_value("threads");
  if (!text) return std::min(available_processors(), 64);
  int threads = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), threads);
  if (error != std::errc() || end != text->data() + text->size() || threads < 1 || threads > 1024)
    return fail(ErrorKind::kInvalidArgument, "--threads is \"{}\"; a number from 1 to 1024 is needed", printable(*text));
  return threads;
}

Result<uint64_t> parse_size(std::string_view text, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
      {"K", 1024.0}, {"KIB", 1024.0}, {"M", 1048576.0}, {"MIB", 1048576.0}, {"G", 1073741824.0}, {"GIB", 1073741824.0}};
  for (const auto& [name, factor] : kUnits)
    if (error == std::errc() && unit == name && value > 0 && value * factor < 9e18)
      return static_cast<uint64_t>(std::llround(value * factor));
  return fail(ErrorKind::kInvalidArgument, "{} is \"{}\"; a size such as 48MB, 1.5GB or 512MiB is needed", what, printable(text));
}

Result<uint64_t> read_max_memory(const maxtext::ConversionArguments& arguments) {
  const auto text = arguments.option_value("max_memory");
  if (!text) return uint64_t{0};
  return parse_size(*text, "--max_memory");
}

Result<std::string> local_path(const std::string& path) {
  const size_t scheme = path.find("://");
  if (scheme == std::string::npos) return path;
  if (path.starts_with("file://")) return path.substr(7);
  return fail(ErrorKind::kUnsupported, "{} is not on this machine; write to a local folder and upload it (the commit markers are in it)",
              printable(path));
}

Result<int64_t> current_timestamp() {
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0') {
    int64_t seconds = 0;
    const std::string_view text(epoch);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size() || seconds < 0 || seconds > 9'000'000'000)
      return fail(ErrorKind::kInvalidArgument, "SOURCE_DATE_EPOCH is \"{}\"; seconds since 1970 are needed", printable(text));
    return seconds * 1'000'000'000;
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Verbosity verbosity(const maxtext::ConversionArguments& arguments) {
  if (arguments.option_is_on("quiet")) return Verbosity::kQuiet;
  return arguments.option_is_on("verbose") ? Verbosity::kVerbose : Verbosity::kNormal;
}

maxtext::SettingsRequest settings_request(const maxtext::ConversionArguments& arguments) {
  maxtext::SettingsRequest request{arguments.base_file, arguments.overrides, {}};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (const size_t equals = text.find('='); equals != std::string_view::npos)
      request.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return request;
}

void print_option(std::string_view name, std::string_view text, std::string_view fallback) {
  fmt::print("  {:<34} {}{}\n", name, text, fallback.empty() ? "" : fmt::format(" (default: {})", fallback));
}

void print_program_options(std::span<const maxtext::ProgramOption> options) {
  for (const maxtext::ProgramOption& option : options)
    print_option(fmt::format("--{}{}{}", option.name, option.value_name.empty() ? "" : "=", option.value_name), option.help);
}

}  // namespace maxport::cli
