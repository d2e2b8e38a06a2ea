// Opens a model of either layout for a forward pass.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forward/decoder.h"
#include "maxtext/settings.h"
#include "storage/storage.h"

namespace maxport::forward {

struct OpenModelRequest {
  std::string path;  ///< a Hugging Face folder (it has a config.json), or a MaxText checkpoint
  // For a checkpoint: see MaxtextRequest.
  std::vector<maxtext::Override> settings = {};
  std::optional<std::string> maxtext_config = {};
  bool like_maxtext = false;  ///< round embedding tables where MaxText and its converter do
};

/// True when `path` is a Hugging Face folder.
Result<bool> is_huggingface(Storage& storage, const std::string& path);

Result<std::unique_ptr<Decoder>> open_model(Storage& storage, const OpenModelRequest& request);

}  // namespace maxport::forward
