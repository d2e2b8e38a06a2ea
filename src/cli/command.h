// The commands of the program. One file each; main.cc finds them here.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace maxport::cli {

struct Command {
  std::string_view name;
  std::string_view summary;  ///< one line for the list of commands
  /// `words` are those after the command's name. Returns the exit status; docs/exit-codes.md.
  int (*run)(std::span<const std::string> words);
};

std::span<const Command> all_commands();

int run_to_maxtext(std::span<const std::string> words);
int run_models(std::span<const std::string> words);
int run_logits(std::span<const std::string> words);
int run_inspect(std::span<const std::string> words);
int run_compare(std::span<const std::string> words);
int run_verify(std::span<const std::string> words);
int run_plan(std::span<const std::string> words);
int run_to_huggingface(std::span<const std::string> words);

}  // namespace maxport::cli
