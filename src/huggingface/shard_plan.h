// Which tensor goes into which file, by the rule of huggingface_hub, so that the split is the one that transformers'
// save_pretrained makes: in the given order, a file is closed when the next tensor would make it larger than the limit;
// a tensor above the limit gets a file of its own. Also closed early: a file whose header would pass the format's
// limit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "safetensors/writer.h"

namespace maxport::huggingface {

/// What save_pretrained of transformers 5 takes; split_torch_state_dict_into_shards of huggingface_hub takes 5GB.
inline constexpr std::string_view kDefaultMaxShardSize = "50GB";

struct ShardFile {
  std::string name;             ///< "model.safetensors", or "model-00001-of-00003.safetensors"
  std::vector<size_t> tensors;  ///< indices into the specs
  uint64_t data_bytes = 0;
};

struct ShardPlan {
  struct Place {
    size_t file = 0;   ///< into `files`
    size_t index = 0;  ///< into that file's `tensors`
  };

  std::vector<ShardFile> files;
  std::vector<Place> places;  ///< one a spec
  uint64_t total_size = 0;    ///< bytes of all tensors
  uint64_t total_parameters = 0;

  bool sharded() const { return files.size() > 1; }
};

/// "5GB", "1.5 tb", "200MB", "7KB" (powers of ten, as in the stock library), or a plain number of bytes.
Result<uint64_t> parse_shard_size(std::string_view text);

/// `stem` begins the file names; `max_header_bytes` is the format's limit but for tests.
Result<ShardPlan> plan_shards(std::span<const safetensors::TensorSpec> tensors, uint64_t max_shard_bytes,
                              std::string_view stem = "model",
                              uint64_t max_header_bytes = safetensors::kMaxHeaderBytes);

/// The content of the index file for a plan.
Json index_json(const ShardPlan& plan, std::span<const safetensors::TensorSpec> tensors);

/// Indented by two, keys sorted, ASCII only, a line feed at the end: as transformers writes its JSON files.
std::string file_text(const Json& json);

}  // namespace maxport::huggingface
