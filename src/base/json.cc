#include "base/json.h"

#include <algorithm>
#include <set>

#include "base/utf8.h"

namespace maxport {
namespace {

/// Builds a DOM while refusing repeated members, deep nesting and numbers out of range.
class StrictBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit StrictBuilder(int max_depth) : max_depth_(max_depth) {}

  Json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(number_integer_t value) override { return place(value); }
  bool number_unsigned(number_unsigned_t value) override { return place(value); }
  bool number_float(number_float_t value, const string_t&) override { return place(value); }
  bool string(string_t& value) override { return place(std::move(value)); }
  bool binary(binary_t&) override { return reject("binary value"); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Json& object = *stack_.back();
    if (object.contains(name)) return reject(fmt::format("member \"{}\" occurs twice", printable(name)));
    pending_ = &object[name];
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string text = error.what();
    if (auto end = text.find("] "); end != std::string::npos) text = text.substr(end + 2);
    return reject(fmt::format("byte {}: {}", position, printable(text)));
  }

 private:
  Json* place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& top = *stack_.back();
    if (top.is_array()) {
      top.push_back(std::move(value));
      return &top.back();
    }
    *pending_ = std::move(value);
    return pending_;
  }

  bool open(Json container) {
    if (static_cast<int>(stack_.size()) >= max_depth_) return reject(fmt::format("nested deeper than {}", max_depth_));
    stack_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  bool reject(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  int max_depth_;
  Json root_;
  std::vector<Json*> stack_;  // containers that are still open; stable, since only the innermost one grows
  Json* pending_ = nullptr;
  std::string problem_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    return fail(ErrorKind::kResourceLimit, "{}: {} bytes of JSON, the limit is {}", what, text.size(),
                limits.max_bytes);
  if (text.starts_with("\xef\xbb\xbf"))
    return fail(ErrorKind::kCorruptData, "{}: JSON must not begin with a byte order mark", what);
  if (!is_valid_utf8(text)) return fail(ErrorKind::kCorruptData, "{}: JSON is not valid UTF-8", what);
  // The parser below takes a NUL for the end of its input and would not look at what follows.
  if (text.find('\0') != std::string_view::npos)
    return fail(ErrorKind::kCorruptData, "{}: JSON holds a NUL byte", what);
  StrictBuilder builder(limits.max_depth);
  if (!Json::sax_parse(text, &builder) || !builder.problem().empty())
    return fail(ErrorKind::kCorruptData, "{}: not valid JSON: {}", what,
                builder.problem().empty() ? "malformed" : builder.problem());
  return builder.take();
}

void append_json_string(std::string& out, std::string_view text) {
  const auto plain = [](char c) { return c >= ' ' && c != '"' && c != '\\' && c != '\x7f'; };
  if (!std::ranges::all_of(text, plain)) {
    out += Json(text).dump();
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

std::string_view json_kind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string: return "a string";
    case Json::value_t::boolean: return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned: return "an integer";
    case Json::value_t::number_float: return "a number";
    default: return "an unknown value";
  }
}

}  // namespace maxport
