// Byte-pair encoding of one word, as the model "BPE" of a tokenizer.json: the "model" member.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace maxport::tokenizer {

class Bpe {
 public:
  /// Takes merges as pairs and as "a b". kUnsupported for dropout and for prefixes and suffixes of subwords.
  static Result<Bpe> from_json(const Json& model, const std::string& what);

  /// Appends the ids of one word: its characters, merged by rank. A character without a token becomes its bytes'
  /// <0xNN> where byte_fallback asks for it, else the unknown token, else nothing. `word` must be valid UTF-8.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

  /// Null when there is none. The text lives as long as this.
  const std::string* token(int32_t id) const;
  const int32_t* id(std::string_view token) const;
  size_t size() const { return ids_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Merge {
    uint32_t rank;
    int32_t id;
  };

  Result<> read_options(const Json& model, const std::string& what);
  Result<> read_vocabulary(const Json& vocabulary, const std::string& what);
  Result<> read_merges(const Json& merges, const std::string& what);
  Result<> add_merge(std::string_view left, std::string_view right, size_t rank, const std::string& what);
  std::vector<int32_t> characters(std::string_view word) const;
  bool append_bytes(std::string_view character, std::vector<int32_t>& ids) const;
  const Merge* merge(int32_t left, int32_t right) const;
  void merge_all(std::vector<int32_t>& ids) const;

  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;  // of the keys of ids_, which stay where they are
  std::unordered_map<uint64_t, Merge> merges_;
  const int32_t* unknown_ = nullptr;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
};

}  // namespace maxport::tokenizer
