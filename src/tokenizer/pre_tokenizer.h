// The "pre_tokenizer" of a tokenizer.json: Sequence, Split, Digits, ByteLevel, Metaspace. It cuts a text into words.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"

namespace maxport::tokenizer {

struct Piece {
  std::string text;
  bool at_start;  ///< begins where the whole text does
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Cuts each piece further; none of the results is empty. Texts are valid UTF-8.
  virtual Result<std::vector<Piece>> apply(std::vector<Piece> pieces) const = 0;
};

/// One that cuts nothing for null; kUnsupported names a component of another type.
Result<std::unique_ptr<PreTokenizer>> parse_pre_tokenizer(const Json& value, const std::string& what);

}  // namespace maxport::tokenizer
