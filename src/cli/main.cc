// maxport: converts model weights between Hugging Face and MaxText checkpoints.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "cli/command.h"
#include "cli/console.h"

namespace maxport::cli {
namespace {

void print_help(std::FILE* out) {
  fmt::print(out,
             "maxport {} carries model weights between Hugging Face checkpoints (safetensors)\n"
             "and MaxText checkpoints (Orbax), both ways.\n\n"
             "usage: maxport COMMAND [ARGUMENTS]\n\ncommands:\n",
             MAXPORT_VERSION);
  for (const Command& command : all_commands()) fmt::print(out, "  {:<16} {}\n", command.name, command.summary);
  fmt::print(out,
             "\n'maxport COMMAND --help' tells about one of them. Options may be written with\n"
             "underscores or hyphens. Data goes to stdout, talk to stderr.\n");
}

int run(std::span<const std::string> words) {
  if (words.empty()) {
    print_help(stderr);
    return exit_code(ErrorKind::kInvalidArgument);
  }
  const std::string& first = words[0];
  if (first == "--help" || first == "-h" || first == "help") {
    print_help(stdout);
    return 0;
  }
  if (first == "--version") {
    fmt::print("maxport {}\n", MAXPORT_VERSION);
    return 0;
  }
  std::string name = first;
  std::ranges::replace(name, '-', '_');
  for (const Command& command : all_commands())
    if (command.name == name) return command.run(words.subspan(1));
  fmt::print(stderr, "maxport: there is no command \"{}\"; 'maxport --help' lists them\n", printable(first));
  return exit_code(ErrorKind::kInvalidArgument);
}

}  // namespace
}  // namespace maxport::cli

int main(int argc, char** argv) {
  // Large buffers come from the system and go back to it: by default glibc keeps more of them from the first that is freed.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  return maxport::cli::run(words);
}
