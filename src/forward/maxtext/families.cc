#include "forward/maxtext/families.h"

#include <algorithm>
#include <array>

#include "forward/maxtext/find_settings.h"

namespace maxport::forward {
namespace {

struct Entry {
  std::string_view decoder_block;
  MaxtextFamily build;
};

// Sorted by name.
constexpr std::array kFamilies = {
    Entry{"deepseek", maxtext_deepseek},
    Entry{"gemma2", maxtext_gemma2},
    Entry{"gemma3", maxtext_gemma3},
    Entry{"gemma4", maxtext_gemma4},
    Entry{"gemma4_small", maxtext_gemma4},
    Entry{"gpt_oss", maxtext_gpt_oss},
    Entry{"llama2", maxtext_llama},
    Entry{"mistral", maxtext_llama},
    Entry{"mixtral", maxtext_mixtral},
    Entry{"olmo3", maxtext_olmo3},
    Entry{"qwen2", maxtext_qwen2},
    Entry{"qwen3", maxtext_qwen3},
    Entry{"qwen3_5", maxtext_qwen3_hybrid},
    Entry{"qwen3_moe", maxtext_qwen3_moe},
    Entry{"qwen3_next", maxtext_qwen3_hybrid},
};

}  // namespace

std::vector<std::string_view> maxtext_decoder_blocks() {
  std::vector<std::string_view> out;
  for (const Entry& entry : kFamilies) out.push_back(entry.decoder_block);
  return out;
}

Result<std::unique_ptr<Decoder>> open_maxtext(Storage& storage, const MaxtextRequest& request) {
  MAXPORT_ASSIGN_OR_RETURN(auto opened, orbax::Checkpoint::open(storage, request.path));
  const std::string context = "in " + printable(request.path);
  MAXPORT_ASSIGN_OR_RETURN(auto weights, with_context(CheckpointWeights::open(std::move(opened)), context));
  MAXPORT_ASSIGN_OR_RETURN(auto settings, find_settings(storage, request, *weights));
  MaxtextModel model{std::move(weights), std::make_shared<const maxtext::Settings>(std::move(settings)), true,
                     request.round_tied_table};
  MAXPORT_ASSIGN_OR_RETURN(const bool scan_layers, model.settings->boolean("scan_layers"));
  model.scanned = model.weights->scan_layers().value_or(scan_layers);
  MAXPORT_ASSIGN_OR_RETURN(const std::string block, model.settings->text("decoder_block"));
  const auto found = std::ranges::find(kFamilies, std::string_view(block), &Entry::decoder_block);
  if (found == kFamilies.end())
    return fail(ErrorKind::kUnsupported, "{}: no forward pass for decoder_block \"{}\"; there is one for {}",
                printable(request.path), printable(block), fmt::join(maxtext_decoder_blocks(), ", "));
  return with_context(found->build(std::move(model)), context);
}

}  // namespace maxport::forward
