// Turns the events of a JSON parser into safetensors entries, without a document tree: a header may hold a million
// entries. Checks the form of each entry; the rules that hold between entries are parse_header's.
#pragma once

#include <map>
#include <string>
#include <unordered_set>

#include "base/json.h"
#include "safetensors/header.h"

namespace maxport::safetensors {

/// Single use, one thread. Offsets of the entries stay relative to the end of the JSON.
class HeaderSax final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderSax(MetadataPolicy policy) : policy_(policy) {}

  /// Entries in the order of the text, metadata and notes; `by_name` is left empty.
  Header take();
  const std::string& problem() const { return problem_; }
  ErrorKind problem_kind() const { return problem_kind_; }

  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override;
  bool start_object(size_t elements) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(size_t elements) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string& token, const nlohmann::detail::exception& error) override;

 private:
  /// What the next value is.
  enum class Expect { kRoot, kEntry, kDtype, kShape, kExtent, kOffsets, kOffset, kMetadata, kMetadataValue, kIgnored };
  /// The innermost known object.
  enum class Inside { kNothing, kTop, kEntry, kMetadata };

  bool reject(std::string problem, ErrorKind kind = ErrorKind::kCorruptData);
  /// A value of the wrong kind: an error, or a note when it concerns metadata and these are tolerated.
  bool unexpected(std::string_view found);
  /// A scalar that no known field takes.
  bool scalar(std::string_view found);
  bool ignore_container();
  bool top_key(std::string& name);
  bool entry_key(const std::string& name);
  bool metadata_key(std::string& name);
  bool finish_entry();
  bool extent(uint64_t value);
  bool offset(uint64_t value);
  std::string current_tensor() const;

  MetadataPolicy policy_;
  Header header_;
  Expect expect_ = Expect::kRoot;
  Inside inside_ = Inside::kNothing;
  int ignored_depth_ = 0;  ///< open containers inside a value that is ignored

  // The entry being read.
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  bool extent_too_large_ = false, zero_extent_ = false;
  int offset_count_ = 0;
  std::unordered_set<std::string> unknown_fields_;

  bool has_metadata_ = false;
  std::string metadata_name_;
  std::map<std::string, uint64_t> unknown_counts_;
  std::string problem_;
  ErrorKind problem_kind_ = ErrorKind::kCorruptData;
};

}  // namespace maxport::safetensors
