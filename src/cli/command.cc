#include "cli/command.h"

#include <array>

namespace maxport::cli {
namespace {

constexpr std::array kCommands{
    Command{"to_maxtext", "Hugging Face model directory -> MaxText checkpoint", run_to_maxtext},
    Command{"to_huggingface", "MaxText checkpoint -> Hugging Face model directory", run_to_huggingface},
    Command{"verify", "is a checkpoint whole, unchanged, and what its source means?", run_verify},
    Command{"logits", "a forward pass through one or two models, and how near their logits are", run_logits},
    Command{"compare", "are two models equal, whatever form each is stored in?", run_compare},
    Command{"inspect", "what is at a path: tensors, how they are stored, which model", run_inspect},
    Command{"plan", "the conversion of a named model at full size, without weights", run_plan},
    Command{"models", "model families and names that can be converted", run_models},
};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

}  // namespace maxport::cli
