// The "added_tokens" of a tokenizer.json: texts that are one token wherever they stand, special ones among them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/normalizer.h"

namespace maxport::tokenizer {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  std::string matched;  ///< what is looked for and decoded: the normalized content of a token that is normalized
  bool single_word = false;
  bool lstrip = false;
  bool rstrip = false;
  bool normalized = false;
  bool special = false;
};

/// A part of a text: an added token, or what lies between two.
struct Part {
  std::string_view text;
  std::optional<int32_t> id;
};

class AddedTokens {
 public:
  /// An id must be the one that the vocabulary, or the count of tokens so far, gives its token; the reference would
  /// silently use that other id.
  static Result<AddedTokens> from_json(const Json& value, const Bpe& model, const Normalizer& normalizer,
                                       const std::string& what);

  /// Cuts a text at the tokens that are matched before normalization, or at those matched after it: from left to
  /// right, the longest first. `text` must outlive the parts.
  std::vector<Part> split(std::string_view text, bool normalized) const;

  /// Null when the id is not one of an added token.
  const AddedToken* token(int32_t id) const;

 private:
  struct Node {
    std::map<char, size_t> next;
    std::optional<int32_t> id;
  };
  using Trie = std::vector<Node>;
  struct Match {
    size_t end;
    const AddedToken* token;
  };

  Result<> add(AddedToken token, const Bpe& model, const Normalizer& normalizer, const std::string& what);
  std::optional<Match> longest(const Trie& trie, std::string_view text, size_t at) const;

  std::unordered_map<int32_t, AddedToken> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  Trie raw_{1};
  Trie normalized_{1};
};

}  // namespace maxport::tokenizer
