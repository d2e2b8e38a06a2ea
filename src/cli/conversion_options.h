// Options that several commands share.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/console.h"
#include "maxtext/arguments.h"

namespace maxport::cli {

/// --threads, by default the number of processors this process may use.
Result<int> read_threads(const maxtext::ConversionArguments& arguments);
/// --max_memory in bytes, 0 when not given. Sizes are like "48MB" (10^6), "1GiB" (2^30) or plain bytes.
Result<uint64_t> read_max_memory(const maxtext::ConversionArguments& arguments);
Result<uint64_t> parse_size(std::string_view text, std::string_view what);
/// A path on this machine; URLs ("gs://") are kUnsupported.
Result<std::string> local_path(const std::string& path);
/// SOURCE_DATE_EPOCH if set, else now; nanoseconds since 1970.
Result<int64_t> current_timestamp();
Verbosity verbosity(const maxtext::ConversionArguments& arguments);
/// The settings that a command line asks for, with the process's environment.
maxtext::SettingsRequest settings_request(const maxtext::ConversionArguments& arguments);

void print_option(std::string_view name, std::string_view text, std::string_view fallback = {});
void print_program_options(std::span<const maxtext::ProgramOption> options);

}  // namespace maxport::cli
