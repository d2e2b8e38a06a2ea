// What a path on the command line means: a Hugging Face model, one weight file, or a MaxText checkpoint.
#pragma once

#include <string>

#include "storage/storage.h"

namespace maxport::convert {

enum class PathKind {
  kModelFolder,     ///< config.json, safetensors files or their index; also a repository in the hub's cache
  kWeightFile,      ///< one file, taken for safetensors
  kCheckpoint,      ///< any other folder: an item, a step or a folder of steps
};

/// kNotFound when nothing is there.
Result<PathKind> path_kind(Storage& storage, const std::string& path);

}  // namespace maxport::convert
