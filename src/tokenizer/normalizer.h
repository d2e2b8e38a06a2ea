// The "normalizer" of a tokenizer.json: Sequence, Replace, Prepend, NFC, NFD, NFKC, NFKD.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"

namespace maxport::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text` is valid UTF-8, the result too.
  virtual Result<std::string> apply(std::string text) const = 0;
};

/// One that changes nothing for null; kUnsupported names a component of another type.
Result<std::unique_ptr<Normalizer>> parse_normalizer(const Json& value, const std::string& what);

}  // namespace maxport::tokenizer
