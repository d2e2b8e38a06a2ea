// A tokenizer.json and, after a line break, a text to encode; whatever ids come out decode.
#include <cstdlib>

#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace maxport;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(all.find('\n'), all.size());
  const auto tokenizer = tokenizer::Tokenizer::parse(all.substr(0, line), "input");
  if (!tokenizer) return 0;
  const auto ids = tokenizer->encode(all.substr(std::min(line + 1, all.size())));
  // A template may name ids that the vocabulary does not have.
  if (ids) (void)tokenizer->decode(*ids);
  return 0;
}
