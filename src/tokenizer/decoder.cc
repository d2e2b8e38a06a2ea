#include "tokenizer/decoder.h"

#include <fmt/ranges.h>

#include <charconv>
#include <limits>

#include "base/utf8.h"
#include "tokenizer/component.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace maxport::tokenizer {
namespace {

using Tokens = std::vector<std::string>;

std::string concatenated(const Tokens& tokens) {
  std::string out;
  for (const std::string& token : tokens) out += token;
  return out;
}

class Spaced : public Decoder {
 public:
  Result<Tokens> apply(Tokens tokens) const override { return Tokens{fmt::format("{}", fmt::join(tokens, " "))}; }
};

class Sequence : public Decoder {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> parts) : parts_(std::move(parts)) {}
  Result<Tokens> apply(Tokens tokens) const override {
    for (const auto& part : parts_) {
      MAXPORT_ASSIGN_OR_RETURN(tokens, part->apply(std::move(tokens)));
    }
    return tokens;
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

class ByteLevel : public Decoder {
 public:
  Result<Tokens> apply(Tokens tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += bytes_of(token);
    return Tokens{replace_malformed(bytes)};
  }

 private:
  /// A token with a character outside the alphabet, such as an added one, stands for its own bytes.
  static std::string bytes_of(const std::string& token) {
    std::string bytes;
    for (std::string_view rest = token; !rest.empty();) {
      const size_t length = utf8_sequence_length(rest);
      const auto byte = length ? byte_of_character(first_code_point(rest)) : std::nullopt;
      if (!byte) return token;
      bytes += static_cast<char>(*byte);
      rest.remove_prefix(length);
    }
    return bytes;
  }
};

class Replace : public Decoder {
 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Result<Tokens> apply(Tokens tokens) const override {
    for (std::string& token : tokens) {
      MAXPORT_ASSIGN_OR_RETURN(const std::vector<Span> spans, pattern_.find(token));
      std::string out;
      for (const Span& span : spans) out += span.is_match ? content_ : token.substr(span.begin, span.end - span.begin);
      token = std::move(out);
    }
    return tokens;
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class ByteFallback : public Decoder {
 public:
  Result<Tokens> apply(Tokens tokens) const override {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (is_valid_utf8(bytes)) {
        if (!bytes.empty()) out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), "\xef\xbf\xbd");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of(token)) {
        bytes += static_cast<char>(*byte);
      } else {
        flush();
        out.push_back(std::move(token));
      }
    }
    flush();
    return out;
  }

 private:
  static std::optional<uint8_t> byte_of(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
    uint8_t byte = 0;
    const char* end = token.data() + 5;
    const auto [stop, error] = std::from_chars(token.data() + 3, end, byte, 16);
    if (error != std::errc() || stop != end) return std::nullopt;
    return byte;
  }
};

class Fuse : public Decoder {
 public:
  Result<Tokens> apply(Tokens tokens) const override { return Tokens{concatenated(tokens)}; }
};

class Strip : public Decoder {
 public:
  Strip(std::string character, int64_t start, int64_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  Result<Tokens> apply(Tokens tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int64_t i = 0; i < start_ && rest.starts_with(character_); ++i) rest.remove_prefix(character_.size());
      for (int64_t i = 0; i < stop_ && rest.ends_with(character_); ++i) rest.remove_suffix(character_.size());
      token = std::string(rest);
    }
    return tokens;
  }

 private:
  std::string character_;
  int64_t start_;
  int64_t stop_;
};

/// Marks become spaces, and nothing in the first token, whose mark the pre-tokenizer may have put there.
class Metaspace : public Decoder {
 public:
  Metaspace(Pattern mark, bool prepends) : mark_(std::move(mark)), prepends_(prepends) {}
  Result<Tokens> apply(Tokens tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      MAXPORT_ASSIGN_OR_RETURN(const std::vector<Span> spans, mark_.find(tokens[i]));
      const std::string_view instead = i == 0 && prepends_ ? "" : " ";
      std::string out;
      for (const Span& span : spans)
        out += span.is_match ? instead : std::string_view(tokens[i]).substr(span.begin, span.end - span.begin);
      tokens[i] = std::move(out);
    }
    return tokens;
  }

 private:
  Pattern mark_;
  bool prepends_;
};

Result<std::unique_ptr<Decoder>> parse_replace(JsonMembers& members) {
  MAXPORT_ASSIGN_OR_RETURN(const Json* json, members.get("pattern"));
  MAXPORT_ASSIGN_OR_RETURN(Pattern pattern, Pattern::from_json(*json, members.member_path("pattern")));
  MAXPORT_ASSIGN_OR_RETURN(std::string content, members.text("content"));
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}

Result<std::unique_ptr<Decoder>> parse_strip(JsonMembers& members) {
  MAXPORT_ASSIGN_OR_RETURN(std::string character, component_character(members, "content"));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t start, members.integer("start", 0));
  MAXPORT_ASSIGN_OR_RETURN(const int64_t stop, members.integer("stop", 0));
  return std::make_unique<Strip>(std::move(character), start, stop);
}

Result<std::unique_ptr<Decoder>> parse_metaspace(JsonMembers& members) {
  MAXPORT_ASSIGN_OR_RETURN(std::string mark, component_character(members, "replacement"));
  MAXPORT_ASSIGN_OR_RETURN(bool prepends, component_flag(members, "add_prefix_space", true));
  if (members.find("prepend_scheme")) {
    MAXPORT_ASSIGN_OR_RETURN(const size_t scheme, members.choice("prepend_scheme", {"always", "first", "never"}));
    prepends = scheme != 2;
  }
  MAXPORT_ASSIGN_OR_RETURN(Pattern pattern, Pattern::literal(std::move(mark), members.what()));
  return std::make_unique<Metaspace>(std::move(pattern), prepends);
}

}  // namespace

Result<std::unique_ptr<Decoder>> parse_decoder(const Json& value, const std::string& what) {
  if (value.is_null()) return std::make_unique<Spaced>();
  MAXPORT_ASSIGN_OR_RETURN(const std::string type, component_type(value, what));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  if (type == "Sequence") {
    MAXPORT_ASSIGN_OR_RETURN(auto parts,
                             parse_components<std::unique_ptr<Decoder>>(members, "decoders", parse_decoder));
    return std::make_unique<Sequence>(std::move(parts));
  }
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Replace") return parse_replace(members);
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return parse_strip(members);
  if (type == "Metaspace") return parse_metaspace(members);
  return unsupported_component(what, type, "Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace");
}

}  // namespace maxport::tokenizer
