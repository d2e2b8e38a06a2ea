#include "tokenizer/bpe.h"

#include <limits>
#include <queue>

#include "base/json_members.h"
#include "base/utf8.h"

namespace maxport::tokenizer {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

/// False for members that are absent or null.
bool is_given(const Json* value) { return value && !value->is_null(); }

Result<bool> flag(JsonMembers& members, const std::string& name) {
  const Json* value = members.find(name);
  if (!is_given(value)) return false;
  return json_boolean(*value, members.member_path(name));
}

}  // namespace

Result<Bpe> Bpe::from_json(const Json& model, const std::string& what) {
  Bpe bpe;
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(model, what));
  MAXPORT_ASSIGN_OR_RETURN(const Json* vocabulary, members.get("vocab"));
  MAXPORT_ASSIGN_OR_RETURN(const Json* merges, members.get("merges"));
  MAXPORT_RETURN_IF_ERROR(bpe.read_vocabulary(*vocabulary, members.member_path("vocab")));
  MAXPORT_RETURN_IF_ERROR(bpe.read_merges(*merges, members.member_path("merges")));
  MAXPORT_RETURN_IF_ERROR(bpe.read_options(model, what));
  return bpe;
}

Result<> Bpe::read_options(const Json& model, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(model, what));
  if (const Json* dropout = members.find("dropout"); is_given(dropout) && *dropout != Json(0.0))
    return fail(ErrorKind::kUnsupported, "{}: dropout makes the ids random; set it to null",
                members.member_path("dropout"));
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const Json* affix = members.find(name); is_given(affix) && *affix != Json(""))
      return fail(ErrorKind::kUnsupported, "{}: tokens with such an affix are not supported",
                  members.member_path(name));
  }
  MAXPORT_ASSIGN_OR_RETURN(fuse_unknown_, flag(members, "fuse_unk"));
  MAXPORT_ASSIGN_OR_RETURN(byte_fallback_, flag(members, "byte_fallback"));
  MAXPORT_ASSIGN_OR_RETURN(ignore_merges_, flag(members, "ignore_merges"));
  if (const Json* token = members.find("unk_token"); is_given(token)) {
    MAXPORT_ASSIGN_OR_RETURN(const std::string text, json_text(*token, members.member_path("unk_token")));
    unknown_ = id(text);
    if (!unknown_)
      return fail(ErrorKind::kCorruptData, "{}: \"{}\" is not in the vocabulary", members.member_path("unk_token"),
                  printable(text));
  }
  return {};
}

Result<> Bpe::read_vocabulary(const Json& vocabulary, const std::string& what) {
  if (!vocabulary.is_object())
    return fail(ErrorKind::kCorruptData, "{}: found {}, expected an object", what, json_kind(vocabulary));
  ids_.reserve(vocabulary.size());
  tokens_.reserve(vocabulary.size());
  for (const auto& [token, value] : vocabulary.items()) {
    if (!value.is_number_integer() || value < 0 || value > std::numeric_limits<int32_t>::max())
      return fail(ErrorKind::kCorruptData, "{}: the id of \"{}\" is no integer from 0 to 2^31 - 1", what,
                  printable(token));
    const auto entry = ids_.emplace(token, value.get<int32_t>()).first;
    const auto [other, is_new] = tokens_.emplace(entry->second, &entry->first);
    if (!is_new)
      return fail(ErrorKind::kCorruptData, "{}: \"{}\" and \"{}\" both have the id {}", what, printable(*other->second),
                  printable(token), entry->second);
  }
  return {};
}

Result<> Bpe::read_merges(const Json& merges, const std::string& what) {
  if (!merges.is_array() || merges.size() > std::numeric_limits<uint32_t>::max())
    return fail(ErrorKind::kCorruptData, "{}: found {}, expected an array", what, json_kind(merges));
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const Json& entry = merges[rank];
    if (entry.is_string()) {
      const std::string_view text = entry.get_ref<const std::string&>();
      if (text.starts_with("#version")) continue;
      const size_t space = text.find(' ');
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        return fail(ErrorKind::kCorruptData, "{}: entry {} is \"{}\", expected two tokens and one space between them",
                    what, rank, printable(text));
      MAXPORT_RETURN_IF_ERROR(add_merge(text.substr(0, space), text.substr(space + 1), rank, what));
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
      MAXPORT_RETURN_IF_ERROR(
          add_merge(entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>(), rank, what));
    } else {
      return fail(ErrorKind::kCorruptData, "{}: entry {} is neither a pair of texts nor one text", what, rank);
    }
  }
  return {};
}

Result<> Bpe::add_merge(std::string_view left, std::string_view right, size_t rank, const std::string& what) {
  const std::string merged = std::string(left) + std::string(right);
  const int32_t *left_id = id(left), *right_id = id(right), *merged_id = id(merged);
  if (!left_id || !right_id || !merged_id)
    return fail(ErrorKind::kCorruptData, "{}: entry {} needs \"{}\", which is not in the vocabulary", what, rank,
                printable(!left_id    ? left
                          : !right_id ? right
                                      : std::string_view(merged)));
  merges_.insert_or_assign(pair_key(*left_id, *right_id), Merge{static_cast<uint32_t>(rank), *merged_id});
  return {};
}

const std::string* Bpe::token(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : found->second;
}

const int32_t* Bpe::id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? nullptr : &found->second;
}

const Bpe::Merge* Bpe::merge(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::encode(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.empty()) return;
  if (const int32_t* whole = ignore_merges_ ? id(word) : nullptr) {
    ids.push_back(*whole);
    return;
  }
  std::vector<int32_t> symbols = characters(word);
  merge_all(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

bool Bpe::append_bytes(std::string_view character, std::vector<int32_t>& ids) const {
  std::vector<int32_t> bytes;
  for (const char byte : character) {
    const int32_t* found = id(fmt::format("<0x{:02X}>", static_cast<uint8_t>(byte)));
    if (!found) return false;
    bytes.push_back(*found);
  }
  ids.insert(ids.end(), bytes.begin(), bytes.end());
  return true;
}

std::vector<int32_t> Bpe::characters(std::string_view word) const {
  std::vector<int32_t> ids;
  ids.reserve(word.size());
  // An unknown token waits for the next known character, as in the reference, where bytes may overtake it.
  size_t waiting = 0;
  const auto flush = [&] {
    for (; waiting > 0; --waiting) ids.push_back(*unknown_);
  };
  for (size_t at = 0, length = 0; at < word.size(); at += length) {
    length = std::max<size_t>(1, utf8_sequence_length(word.substr(at)));
    const std::string_view character = word.substr(at, length);
    if (const int32_t* found = id(character)) {
      flush();
      ids.push_back(*found);
    } else if (!(byte_fallback_ && append_bytes(character, ids)) && unknown_) {
      if (!fuse_unknown_) flush();
      waiting = 1;
    }
  }
  flush();
  return ids;
}

void Bpe::merge_all(std::vector<int32_t>& ids) const {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  struct Candidate {
    uint32_t rank;
    size_t position;
    int32_t id;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  const size_t count = ids.size();
  std::vector<size_t> next(count), previous(count);
  std::vector<bool> gone(count);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t left, size_t right) {
    if (const Merge* found = merge(ids[left], ids[right])) queue.push({found->rank, left, found->id});
  };
  for (size_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kNone : i - 1;
    next[i] = i + 1 == count ? kNone : i + 1;
    if (i + 1 < count) offer(i, i + 1);
  }
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const size_t left = best.position;
    if (gone[left] || next[left] == kNone) continue;
    const size_t right = next[left];
    // An entry from before another merge changed one of the two.
    const Merge* current = merge(ids[left], ids[right]);
    if (!current || current->id != best.id) continue;
    ids[left] = best.id;
    gone[right] = true;
    next[left] = next[right];
    if (next[left] != kNone) {
      previous[next[left]] = left;
      offer(left, next[left]);
    }
    if (previous[left] != kNone) offer(previous[left], left);
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!gone[i]) ids[kept++] = ids[i];
  }
  ids.resize(kept);
}

}  // namespace maxport::tokenizer
