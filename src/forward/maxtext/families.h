// Which code runs a MaxText checkpoint, by the setting decoder_block.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "forward/maxtext/decoder.h"
#include "storage/storage.h"

namespace maxport::forward {

struct MaxtextRequest {
  std::string path;                              ///< a step, its items, or a folder of steps
  std::vector<maxtext::Override> settings = {};  ///< key=value words; they win
  std::optional<std::string> config = {};        ///< a maxtext.yml; else the one beside the step, else the record in it
  bool round_tied_table = false;
};

/// Finds the settings and builds the decoder. kUnsupported for a decoder block without a forward pass here;
/// kInvalidArgument tells what to pass when nothing says which model it is.
Result<std::unique_ptr<Decoder>> open_maxtext(Storage& storage, const MaxtextRequest& request);

/// The decoder blocks that open_maxtext takes.
std::vector<std::string_view> maxtext_decoder_blocks();

// Families. Each builds a prepared decoder.
using MaxtextFamily = Result<std::unique_ptr<Decoder>> (*)(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_llama(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_qwen2(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_qwen3(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_gemma2(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_gemma3(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_gemma4(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_olmo3(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_mixtral(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_qwen3_moe(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_gpt_oss(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_deepseek(MaxtextModel model);
Result<std::unique_ptr<Decoder>> maxtext_qwen3_hybrid(MaxtextModel model);

/// Builds a decoder of class D.
template <class D>
Result<std::unique_ptr<Decoder>> make_maxtext(MaxtextModel model, MaxtextTraits traits) {
  auto out = std::make_unique<D>(std::move(model), traits);
  MAXPORT_RETURN_IF_ERROR(out->prepare());
  return out;
}

}  // namespace maxport::forward
