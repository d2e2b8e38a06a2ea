// model.safetensors.index.json: which file of a sharded model holds which tensor.
//
//   {"metadata": {"total_size": 123, "total_parameters": 45},
//    "weight_map": {"name": "model-00001-of-00002.safetensors"}}
//
// Parsing is pure. Only weight_map decides anything; the metadata is informative, and wrong in many published files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace maxport::huggingface {

inline constexpr uint64_t kMaxIndexBytes = uint64_t{256} << 20;

struct Index {
  std::map<std::string, std::string, std::less<>> weight_map;  ///< tensor name -> file name relative to the index
  std::vector<std::string> files;                              ///< distinct file names, sorted
  std::optional<uint64_t> total_size;                          ///< bytes of all tensors, if stated as an integer
  std::vector<std::string> warnings;                           ///< about parts that are informative only
};

/// Parses and checks an index. `own_name` is the file name of the index, which no tensor may be mapped to; `what` names
/// it in messages. Fails with kCorruptData or kResourceLimit.
Result<Index> parse_index(std::string_view text, std::string_view own_name, std::string_view what);

/// True for a name that stays in its folder: relative, without "..", ".", empty parts, backslashes or control
/// characters.
bool is_plain_relative_path(std::string_view name);

}  // namespace maxport::huggingface
