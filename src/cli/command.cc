#include "cli/command.h"

#include <array>

namespace maxport::cli {
namespace {

constexpr std::array kCommands{
    Command{"to_maxtext", "Hugging Face model directory -> MaxText checkpoint", run_to_maxtext},
};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

}  // namespace maxport::cli
