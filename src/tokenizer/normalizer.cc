#include "tokenizer/normalizer.h"

#include "tokenizer/component.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode.h"

namespace maxport::tokenizer {
namespace {

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  Result<std::string> apply(std::string text) const override {
    for (const auto& part : parts_) {
      MAXPORT_ASSIGN_OR_RETURN(text, part->apply(std::move(text)));
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

class Replace : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Result<std::string> apply(std::string text) const override {
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<Span> spans, pattern_.find(text));
    std::string out;
    for (const Span& span : spans)
      out += span.is_match ? content_ : std::string_view(text).substr(span.begin, span.end - span.begin);
    return out;
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  Result<std::string> apply(std::string text) const override { return text.empty() ? text : prefix_ + text; }

 private:
  std::string prefix_;
};

class Form : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  Result<std::string> apply(std::string text) const override { return normalize(text, form_); }

 private:
  NormalForm form_;
};

Result<std::unique_ptr<Normalizer>> parse_replace(const Json& value, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  MAXPORT_ASSIGN_OR_RETURN(const Json* json, members.get("pattern"));
  MAXPORT_ASSIGN_OR_RETURN(Pattern pattern, Pattern::from_json(*json, members.member_path("pattern")));
  MAXPORT_ASSIGN_OR_RETURN(std::string content, members.text("content"));
  return std::make_unique<Replace>(std::move(pattern), std::move(content));
}

}  // namespace

Result<std::unique_ptr<Normalizer>> parse_normalizer(const Json& value, const std::string& what) {
  if (value.is_null()) return std::make_unique<Sequence>(std::vector<std::unique_ptr<Normalizer>>());
  MAXPORT_ASSIGN_OR_RETURN(const std::string type, component_type(value, what));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  if (type == "Sequence") {
    MAXPORT_ASSIGN_OR_RETURN(auto parts,
                             parse_components<std::unique_ptr<Normalizer>>(members, "normalizers", parse_normalizer));
    return std::make_unique<Sequence>(std::move(parts));
  }
  if (type == "Replace") return parse_replace(value, what);
  if (type == "Prepend") {
    MAXPORT_ASSIGN_OR_RETURN(std::string prefix, members.text("prepend"));
    return std::make_unique<Prepend>(std::move(prefix));
  }
  if (type == "NFC") return std::make_unique<Form>(NormalForm::kNfc);
  if (type == "NFD") return std::make_unique<Form>(NormalForm::kNfd);
  if (type == "NFKC") return std::make_unique<Form>(NormalForm::kNfkc);
  if (type == "NFKD") return std::make_unique<Form>(NormalForm::kNfkd);
  return unsupported_component(what, type, "Sequence, Replace, Prepend, NFC, NFD, NFKC, NFKD");
}

}  // namespace maxport::tokenizer
