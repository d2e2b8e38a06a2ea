#include "tokenizer/tokenizer.h"

#include <limits>

#include "base/utf8.h"
#include "storage/storage.h"
#include "tokenizer/component.h"

namespace maxport::tokenizer {
namespace {

const Json& member_or_null(const Json& object, const char* name) {
  static const Json null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

/// The ids of a template's special token.
Result<std::vector<int32_t>> special_ids(const Json& table, const std::string& name, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers tokens, JsonMembers::of(table, what));
  MAXPORT_ASSIGN_OR_RETURN(const Json* entry, tokens.get(name));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(*entry, tokens.member_path(name)));
  return parse_components<int32_t>(members, "ids", [](const Json& id, const std::string& place) -> Result<int32_t> {
    MAXPORT_ASSIGN_OR_RETURN(const int64_t value, json_integer(id, place, 0, std::numeric_limits<int32_t>::max()));
    return static_cast<int32_t>(value);
  });
}

}  // namespace

Result<Tokenizer> Tokenizer::open(const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, local_storage().read_text(path));
  return parse(text, path);
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(const Json root, parse_json(json, what));
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(root, what));
  MAXPORT_ASSIGN_OR_RETURN(const Json* model, members.get("model"));
  // The oldest files of BPE models do not name their type.
  if (const Json& type = member_or_null(*model, "type"); !type.is_null() && type != "BPE")
    return unsupported_component(members.member_path("model"), type.is_string() ? type.get<std::string>() : "?", "BPE");
  MAXPORT_ASSIGN_OR_RETURN(Bpe bpe, Bpe::from_json(*model, members.member_path("model")));
  const auto place = [&](const char* name) { return members.member_path(name); };
  MAXPORT_ASSIGN_OR_RETURN(auto normalizer, parse_normalizer(member_or_null(root, "normalizer"), place("normalizer")));
  MAXPORT_ASSIGN_OR_RETURN(AddedTokens added, AddedTokens::from_json(member_or_null(root, "added_tokens"), bpe,
                                                                     *normalizer, place("added_tokens")));
  Tokenizer tokenizer(std::move(bpe), std::move(added));
  tokenizer.normalizer_ = std::move(normalizer);
  MAXPORT_ASSIGN_OR_RETURN(tokenizer.pre_tokenizer_,
                           parse_pre_tokenizer(member_or_null(root, "pre_tokenizer"), place("pre_tokenizer")));
  MAXPORT_ASSIGN_OR_RETURN(tokenizer.decoder_, parse_decoder(member_or_null(root, "decoder"), place("decoder")));
  MAXPORT_RETURN_IF_ERROR(
      tokenizer.read_post_processor(member_or_null(root, "post_processor"), place("post_processor")));
  return tokenizer;
}

Result<> Tokenizer::read_post_processor(const Json& value, const std::string& what) {
  if (value.is_null()) return {};
  MAXPORT_ASSIGN_OR_RETURN(const std::string type, component_type(value, what));
  if (type == "ByteLevel") return {};  // changes offsets only
  if (type == "TemplateProcessing") return read_template(value, what);
  if (type != "Sequence") return unsupported_component(what, type, "Sequence, ByteLevel, TemplateProcessing");
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  const auto read = [this](const Json& part, const std::string& place) -> Result<bool> {
    MAXPORT_RETURN_IF_ERROR(read_post_processor(part, place));
    return true;
  };
  MAXPORT_RETURN_IF_ERROR(parse_components<bool>(members, "processors", read));
  return {};
}

Result<> Tokenizer::read_template(const Json& value, const std::string& what) {
  MAXPORT_ASSIGN_OR_RETURN(JsonMembers members, JsonMembers::of(value, what));
  MAXPORT_ASSIGN_OR_RETURN(const Json* pieces, members.get("single"));
  const std::string place = members.member_path("single");
  if (!pieces->is_array()) return fail(ErrorKind::kCorruptData, "{}: expected an array", place);
  std::vector<int32_t> before, after;
  int sequences = 0;
  for (const Json& piece : *pieces) {
    if (!piece.is_object() || piece.size() != 1 || !piece.front().is_object())
      return fail(ErrorKind::kCorruptData, "{}: a piece is no object of one object", place);
    MAXPORT_ASSIGN_OR_RETURN(JsonMembers part, JsonMembers::of(piece.front(), place));
    MAXPORT_ASSIGN_OR_RETURN(const std::string id, part.text("id"));
    if (piece.contains("Sequence")) {
      if (id != "A" || ++sequences > 1)
        return fail(ErrorKind::kUnsupported, "{}: a template must hold the sequence A once and no other", place);
    } else if (piece.contains("SpecialToken")) {
      MAXPORT_ASSIGN_OR_RETURN(const auto ids, special_ids(member_or_null(value, "special_tokens"), id,
                                                           members.member_path("special_tokens")));
      std::vector<int32_t>& side = sequences ? after : before;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      return fail(ErrorKind::kCorruptData, "{}: a piece is neither Sequence nor SpecialToken", place);
    }
  }
  if (sequences != 1) return fail(ErrorKind::kUnsupported, "{}: a template must hold the sequence A", place);
  before_.insert(before_.begin(), before.begin(), before.end());
  after_.insert(after_.end(), after.begin(), after.end());
  return {};
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  if (!is_valid_utf8(text)) return fail(ErrorKind::kInvalidArgument, "the text to encode is not valid UTF-8");
  std::vector<int32_t> ids;
  if (add_special_tokens) ids = before_;
  for (const Part& part : added_.split(text, false)) {
    if (part.id)
      ids.push_back(*part.id);
    else
      MAXPORT_RETURN_IF_ERROR(encode_between(part.text, part.text.data() == text.data(), ids));
  }
  if (add_special_tokens) ids.insert(ids.end(), after_.begin(), after_.end());
  return ids;
}

Result<> Tokenizer::encode_between(std::string_view text, bool at_start, std::vector<int32_t>& ids) const {
  MAXPORT_ASSIGN_OR_RETURN(const std::string normal, normalizer_->apply(std::string(text)));
  for (const Part& part : added_.split(normal, true)) {
    if (part.id)
      ids.push_back(*part.id);
    else
      MAXPORT_RETURN_IF_ERROR(encode_words(part.text, at_start && part.text.data() == normal.data(), ids));
  }
  return {};
}

Result<> Tokenizer::encode_words(std::string_view text, bool at_start, std::vector<int32_t>& ids) const {
  std::vector<Piece> pieces;
  pieces.push_back({std::string(text), at_start});
  MAXPORT_ASSIGN_OR_RETURN(pieces, pre_tokenizer_->apply(std::move(pieces)));
  for (const Piece& piece : pieces) model_.encode(piece.text, ids);
  return {};
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    if (const AddedToken* added = added_.token(id)) {
      if (!(skip_special_tokens && added->special)) tokens.push_back(added->matched);
    } else if (const std::string* token = model_.token(id)) {
      tokens.push_back(*token);
    } else {
      return fail(ErrorKind::kInvalidArgument, "the tokenizer has no token with the id {}", id);
    }
  }
  MAXPORT_ASSIGN_OR_RETURN(tokens, decoder_->apply(std::move(tokens)));
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

bool Tokenizer::has_token(int32_t id) const { return added_.token(id) || model_.token(id); }

}  // namespace maxport::tokenizer
