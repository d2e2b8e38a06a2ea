#include "tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/component.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace maxport::tokenizer {
namespace {

enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

using Parts = std::vector<std::unique_ptr<PreTokenizer>>;

/// A match joins what stands before it, unless that is a match too.
std::vector<Span> merged(const std::vector<Span>& spans) {
  std::vector<Span> out;
  bool previous = false;
  for (const Span& span : spans) {
    if (span.is_match && !previous && !out.empty()) {
      out.back().begin = std::min(out.back().begin, span.begin);
      out.back().end = std::max(out.back().end, span.end);
    } else {
      out.push_back(span);
    }
    previous = span.is_match;
  }
  return out;
}

std::vector<Span> contiguous(const std::vector<Span>& spans) {
  std::vector<Span> out;
  for (const Span& span : spans) {
    if (!out.empty() && out.back().is_match == span.is_match)
      out.back().end = span.end;
    else
      out.push_back(span);
  }
  return out;
}

std::vector<Span> arrange(std::vector<Span> spans, Behavior behavior) {
  switch (behavior) {
    case Behavior::kIsolated:
      return spans;
    case Behavior::kRemoved:
      std::erase_if(spans, [](const Span& span) { return span.is_match; });
      return spans;
    case Behavior::kContiguous:
      return contiguous(spans);
    case Behavior::kMergedWithPrevious:
      return merged(spans);
    case Behavior::kMergedWithNext: {
      std::ranges::reverse(spans);
      std::vector<Span> joined = merged(spans);
      std::ranges::reverse(joined);
      return joined;
    }
  }
  return spans;
}

void cut(const Piece& piece, const std::vector<Span>& spans, std::vector<Piece>& out) {
  for (const Span& span : spans)
    out.push_back({piece.text.substr(span.begin, span.end - span.begin), piece.at_start && span.begin == 0});
}

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(Parts parts) : parts_(std::move(parts)) {}
  Result<std::vector<Piece>> apply(std::vector<Piece> pieces) const override {
    for (const auto& part : parts_) {
      MAXPORT_ASSIGN_OR_RETURN(pieces, part->apply(std::move(pieces)));
    }
    return pieces;
  }

 private:
  Parts parts_;
};

class Split : public PreTokenizer {
 public:
  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  Result<std::vector<Piece>> apply(std::vector<Piece> pieces) const override {
    std::vector<Piece> out;
    for (const Piece& piece : pieces) {
      MAXPORT_ASSIGN_OR_RETURN(std::vector<Span> spans, pattern_.find(piece.text));
      if (invert_) {
        for (Span& span : spans) span.is_match = !span.is_match;
      }
      cut(piece, arrange(std::move(spans), behavior_), out);
    }
    return out;
  }

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

class Digits : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}
  Result<std::vector<Piece>> apply(std::vector<Piece> pieces) const override {
    std::vector<Piece> out;
    for (const Piece& piece : pieces) cut(piece, spans(piece.text), out);
    return out;
  }

 private:
  std::vector<Span> spans(std::string_view text) const {
    std::vector<Span> found;
    for (size_t at = 0; at < text.size();) {
      const size_t end = at + std::max<size_t>(1, utf8_sequence_length(text.substr(at)));
      const bool digit = is_numeric(first_code_point(text.substr(at)));
      if (!found.empty() && found.back().is_match == digit && !(digit && individual_))
        found.back().end = end;
      else
        found.push_back({at, end, digit});
      at = end;
    }
    return found;
  }

  bool individual_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, std::unique_ptr<PreTokenizer> words)
      : add_prefix_space_(add_prefix_space), words_(std::move(words)) {}
  Result<std::vector<Piece>> apply(std::vector<Piece> pieces) const override {
    if (add_prefix_space_) {
      for (Piece& piece : pieces) {
        if (!piece.text.starts_with(' ')) piece.text.insert(0, " ");
      }
    }
    if (words_) {
      MAXPORT_ASSIGN_OR_RETURN(pieces, words_->apply(std::move(pieces)));
    }
    for (Piece& piece : pieces) {
      std::string characters;
      for (const char byte : piece.text) characters += byte_characters()[static_cast<uint8_t>(byte)];
      piece.text = std::move(characters);
    }
    return pieces;
  }

 private:
  bool add_prefix_space_;
  std::unique_ptr<PreTokenizer> words_;
};

class Metaspace : public PreTokenizer {
 public:
  enum class Prepend { kAlways, kFirst, kNever };
  Metaspace(std::string mark, Pattern pattern, Prepend prepend, bool split)
      : mark_(std::move(mark)), pattern_(std::move(pattern)), prepend_(prepend), split_(split) {}
  Result<std::vector<Piece>> apply(std::vector<Piece> pieces) const override {
    std::vector<Piece> out;
    for (Piece& piece : pieces) {
      mark_spaces(piece);
      if (!split_) {
        out.push_back(std::move(piece));
        continue;
      }
      MAXPORT_ASSIGN_OR_RETURN(std::vector<Span> spans, pattern_.find(piece.text));
      cut(piece, arrange(std::move(spans), Behavior::kMergedWithNext), out);
    }
    return out;
  }

 private:
  void mark_spaces(Piece& piece) const {
    std::string marked;
    for (const char c : piece.text) c == ' ' ? marked += mark_ : marked += c;
    const bool prepend = prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && piece.at_start);
    piece.text = prepend && !marked.starts_with(mark_) ? mark_ + marked : std::move(marked);
  }

  std::string mark_;
  Pattern pattern_;
  Prepend prepend_;
  bool split_;
};

Result<std::unique_ptr<PreTokenizer>> parse_split(JsonMembers& members) {
  MAXPORT_ASSIGN_OR_RETURN(const Json* json, members.get("pattern"));
  MAXPORT_ASSIGN_OR_RETURN(Pattern pattern, Pattern::from_json(*json, members.member_path("pattern")));
  MAXPORT_ASSIGN_OR_RETURN(
      const size_t behavior,
      members.choice("behavior", {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}));
  MAXPORT_ASSIGN_OR_RETURN(const bool invert, component_flag(members, "invert", false));
  return std::make_unique<Split>(std::move(pattern), static_cast<Behavior>(behavior), invert);
}

Result<std::unique_ptr<PreTokenizer>> parse_byte_level(JsonMembers& members) {
  MAXPORT_ASSIGN_OR_RETURN(const bool add_prefix_space, component_flag(members, "add_prefix_space", true));
  MAXPORT_ASSIGN_OR_RETURN(const bool use_regex, component_flag(members, "use_regex", true));
  std::unique_ptr<PreTokenizer> words;
  if (use_regex) {
    // GPT-2's expression.
    MAXPORT_ASSIGN_OR_RETURN(
        Pattern pattern,
        Pattern::expression(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
                            members.what()));
    words = std::make_unique<Split>(std::move(pattern), Behavior::kIsolated, false);
  }
  return std::make_unique<ByteLevel>(add_prefix_space, std::move(words));
}

Result<std::unique_ptr<PreTokenizer>> parse_metaspace(JsonMembers& members) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string mark, component_character(members, "replacement"));
  MAXPORT_ASSIGN_OR_RETURN(const bool split, component_flag(members, "split", true));
  MAXPORT_ASSIGN_OR_RETURN(const bool add_prefix_space, component_flag(members, "add_prefix_space", true));
  size_t scheme = add_prefix_space ? 0 : 2;
  if (members.find("prepend_scheme")) {
    MAXPORT_ASSIGN_OR_RETURN(scheme, members.choice("prepend_scheme", {"always", "first", "never"}));
    if (!add_prefix_space && scheme != 2)
      return fail(ErrorKind::kCorruptData, "{}: contradicts add_prefix_space, which is false",
                  members.member_path("prepend_scheme"));
  }
  MAXPORT_ASSIGN_OR_RETURN(Pattern pattern, Pattern::literal(mark, members.what()));
  return std::make_unique<Metaspace>(mark, std::move(pattern), static_cast<Metaspace::Prepend>(scheme), split);
}

}  // namespace

Result<std::unique_ptr<PreTokenizer>> parse_pre_tokenizer(const Json& value, const std::string& what) {
  if (value.is_null()) return std::make_unique<Sequence>(Parts());
  MAXPORT_ASSIGN_OR_RETURN(const std::string type, component_type(value, what));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  if (type == "Sequence") {
    MAXPORT_ASSIGN_OR_RETURN(
        Parts parts, parse_components<std::unique_ptr<PreTokenizer>>(members, "pretokenizers", parse_pre_tokenizer));
    return std::make_unique<Sequence>(std::move(parts));
  }
  if (type == "Split") return parse_split(members);
  if (type == "Digits") {
    MAXPORT_ASSIGN_OR_RETURN(const bool individual, component_flag(members, "individual_digits", false));
    return std::make_unique<Digits>(individual);
  }
  if (type == "ByteLevel") return parse_byte_level(members);
  if (type == "Metaspace") return parse_metaspace(members);
  return unsupported_component(what, type, "Sequence, Split, Digits, ByteLevel, Metaspace");
}

}  // namespace maxport::tokenizer
