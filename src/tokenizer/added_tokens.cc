#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "tokenizer/component.h"
#include "tokenizer/unicode.h"

namespace maxport::tokenizer {
namespace {

Result<AddedToken> parse_token(const Json& value, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  AddedToken token;
  MAXPORT_ASSIGN_OR_RETURN(const int64_t id, members.integer("id", 0, std::numeric_limits<int32_t>::max()));
  token.id = static_cast<int32_t>(id);
  MAXPORT_ASSIGN_OR_RETURN(token.content, members.text("content"));
  MAXPORT_ASSIGN_OR_RETURN(token.single_word, component_flag(members, "single_word", false));
  MAXPORT_ASSIGN_OR_RETURN(token.lstrip, component_flag(members, "lstrip", false));
  MAXPORT_ASSIGN_OR_RETURN(token.rstrip, component_flag(members, "rstrip", false));
  MAXPORT_ASSIGN_OR_RETURN(token.normalized, component_flag(members, "normalized", true));
  MAXPORT_ASSIGN_OR_RETURN(token.special, component_flag(members, "special", false));
  return token;
}

/// Where the last character of text[0, end) begins.
size_t previous(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

bool is_single_word(std::string_view text, size_t begin, size_t end) {
  const bool joins_before = begin > 0 && is_word(first_code_point(text.substr(previous(text, begin))));
  const bool joins_after = end < text.size() && is_word(first_code_point(text.substr(end)));
  return !joins_before && !joins_after;
}

size_t skip_space_before(std::string_view text, size_t begin) {
  while (begin > 0 && is_white_space(first_code_point(text.substr(previous(text, begin)))))
    begin = previous(text, begin);
  return begin;
}

size_t skip_space_after(std::string_view text, size_t end) {
  while (end < text.size() && is_white_space(first_code_point(text.substr(end))))
    end += std::max<size_t>(1, utf8_sequence_length(text.substr(end)));
  return end;
}

}  // namespace

Result<AddedTokens> AddedTokens::from_json(const Json& value, const Bpe& model, const Normalizer& normalizer,
                                           const std::string& what) {
  AddedTokens added;
  if (value.is_null()) return added;
  if (!value.is_array())
    return fail(ErrorKind::kCorruptData, "{}: found {}, expected an array", what, json_kind(value));
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string entry = fmt::format("{}[{}]", what, i);
    MAXPORT_ASSIGN_OR_RETURN(AddedToken token, parse_token(value[i], entry));
    if (!token.content.empty()) MAXPORT_RETURN_IF_ERROR(added.add(std::move(token), model, normalizer, entry));
  }
  return added;
}

Result<> AddedTokens::add(AddedToken token, const Bpe& model, const Normalizer& normalizer, const std::string& what) {
  if (ids_.contains(token.content))
    return fail(ErrorKind::kCorruptData, "{}: \"{}\" is added twice", what, printable(token.content));
  const int32_t* known = model.id(token.content);
  if (known ? *known != token.id : model.token(token.id) != nullptr)
    return fail(ErrorKind::kCorruptData, "{}: \"{}\" has the id {}, but the model's vocabulary says otherwise", what,
                printable(token.content), token.id);
  token.matched = token.content;
  if (token.normalized) {
    MAXPORT_ASSIGN_OR_RETURN(token.matched, normalizer.apply(token.content));
  }
  Trie& trie = token.normalized ? normalized_ : raw_;
  size_t node = 0;
  for (const char c : token.matched) {
    const auto [edge, is_new] = trie[node].next.emplace(c, trie.size());
    node = edge->second;
    if (is_new) trie.emplace_back();
  }
  if (!token.matched.empty()) trie[node].id = token.id;
  ids_.emplace(token.content, token.id);
  const int32_t id = token.id;
  if (!tokens_.emplace(id, std::move(token)).second)
    return fail(ErrorKind::kCorruptData, "{}: the id {} is added twice", what, id);
  return {};
}

const AddedToken* AddedTokens::token(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

std::optional<AddedTokens::Match> AddedTokens::longest(const Trie& trie, std::string_view text, size_t at) const {
  std::optional<Match> found;
  for (size_t node = 0;; ++at) {
    if (trie[node].id) found = Match{at, token(*trie[node].id)};
    if (at == text.size()) return found;
    const auto edge = trie[node].next.find(text[at]);
    if (edge == trie[node].next.end()) return found;
    node = edge->second;
  }
}

std::vector<Part> AddedTokens::split(std::string_view text, bool normalized) const {
  const Trie& trie = normalized ? normalized_ : raw_;
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const std::optional<Match> match = longest(trie, text, at);
    if (!match) {
      ++at;
      continue;
    }
    size_t begin = at, end = match->end;
    at = end;
    const AddedToken& token = *match->token;
    if (token.single_word && !is_single_word(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(skip_space_before(text, begin), done);
    if (token.rstrip) end = skip_space_after(text, end);
    if (done < begin) parts.push_back({text.substr(done, begin - done), std::nullopt});
    parts.push_back({text.substr(begin, end - begin), token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done), std::nullopt});
  return parts;
}

}  // namespace maxport::tokenizer
