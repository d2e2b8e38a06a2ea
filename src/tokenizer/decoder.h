// The "decoder" of a tokenizer.json: Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"

namespace maxport::tokenizer {

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// The texts of tokens become pieces of the text that they stand for.
  virtual Result<std::vector<std::string>> apply(std::vector<std::string> tokens) const = 0;
};

/// One that puts a space between tokens for null, as the reference does; kUnsupported names a component of another
/// type.
Result<std::unique_ptr<Decoder>> parse_decoder(const Json& value, const std::string& what);

}  // namespace maxport::tokenizer
