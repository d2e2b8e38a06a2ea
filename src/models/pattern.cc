#include "models/pattern.h"

#include <algorithm>
#include <charconv>

#include "base/checked.h"

namespace maxport::models {
namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Recursive descent over one side of a pattern. Patterns are written by us, so faults are internal errors.
class SideParser {
 public:
  SideParser(std::string_view text, const Dimensions& dimensions, Pattern& pattern)
      : text_(text), dimensions_(dimensions), pattern_(pattern) {}

  Result<TensorForm> parse() {
    TensorForm form;
    for (skip_space(); at_ < text_.size(); skip_space()) {
      MAXPORT_ASSIGN_OR_RETURN(AxisForm axis, parse_item(0));
      form.axes.push_back(std::move(axis));
    }
    return form;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string_view take_word() {
    const size_t begin = at_;
    while (is_name_start(peek()) || is_digit(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Result<int64_t> size_of(std::string_view word) const {
    int64_t number = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error == std::errc() && end == word.data() + word.size()) return number;
    return dimensions_.get(word);
  }

  Result<AxisForm> parse_item(int depth) {
    if (depth > 4) return malformed("nested too deeply");
    AxisForm axis;
    if (peek() == '(') {
      ++at_;
      MAXPORT_ASSIGN_OR_RETURN(axis, parse_product(depth));
    } else if (is_name_start(peek()) || is_digit(peek())) {
      MAXPORT_ASSIGN_OR_RETURN(axis, parse_index());
    } else if (peek() != '@') {
      return malformed("unexpected character");
    }
    if (peek() == '@') MAXPORT_RETURN_IF_ERROR(parse_range(axis));
    return axis;
  }

  Result<AxisForm> parse_index() {
    const std::string_view word = take_word();
    MAXPORT_ASSIGN_OR_RETURN(const int64_t size, size_of(word));
    if (size < 0) return malformed("negative size");
    AxisForm axis;
    axis.extent = size;
    if (word == "1") return axis;
    int index = pattern_.find(word);
    if (index < 0) {
      index = static_cast<int>(pattern_.names.size());
      pattern_.names.emplace_back(word);
      pattern_.sizes.push_back(size);
    }
    if (std::ranges::find(seen_, index) != seen_.end()) return malformed("an index occurs twice on one side");
    seen_.push_back(index);
    axis.terms.push_back({index, 1});
    return axis;
  }

  Result<AxisForm> parse_product(int depth) {
    AxisForm product;
    for (skip_space(); peek() != ')'; skip_space()) {
      if (at_ >= text_.size()) return malformed("')' is missing");
      MAXPORT_ASSIGN_OR_RETURN(const AxisForm factor, parse_item(depth + 1));
      const auto extent = checked_multiply(product.extent, factor.extent);
      if (!extent) return fail(ErrorKind::kResourceLimit, "an axis of \"{}\" has more than 2^63 positions", text_);
      for (Term& term : product.terms) term.stride *= factor.extent;
      product.offset = product.offset * factor.extent + factor.offset;
      product.extent = *extent;
      product.terms.insert(product.terms.end(), factor.terms.begin(), factor.terms.end());
    }
    ++at_;
    return product;
  }

  Result<> parse_range(AxisForm& axis) {
    ++at_;
    MAXPORT_ASSIGN_OR_RETURN(const int64_t offset, size_of(take_word()));
    if (peek() != '/') return malformed("'/' is missing after '@offset'");
    ++at_;
    MAXPORT_ASSIGN_OR_RETURN(const int64_t total, size_of(take_word()));
    if (offset < 0 || axis.extent > total || offset > total - axis.extent)
      return fail(ErrorKind::kInvalidArgument, "range {}..{} lies outside an axis of {} in \"{}\"", offset,
                  offset + axis.extent, total, text_);
    axis.offset += offset;
    axis.extent = total;
    return {};
  }

  std::unexpected<Error> malformed(std::string_view why) const {
    return fail(ErrorKind::kInternal, "pattern \"{}\": {} at character {}", text_, why, at_);
  }

  std::string_view text_;
  const Dimensions& dimensions_;
  Pattern& pattern_;
  std::vector<int> seen_;
  size_t at_ = 0;
};

}  // namespace

Result<int64_t> Dimensions::get(std::string_view name) const {
  auto found = sizes_.find(name);
  if (found == sizes_.end()) return fail(ErrorKind::kInternal, "the family defines no index \"{}\"", name);
  return found->second;
}

std::string Dimensions::explain(std::string_view side) const {
  std::string out;
  for (size_t at = 0; at < side.size();) {
    size_t end = at;
    while (end < side.size() && (is_name_start(side[end]) || is_digit(side[end]))) ++end;
    if (const auto found = sizes_.find(side.substr(at, end - at)); end > at && found != sizes_.end()) {
      const auto role = roles_.find(found->first);
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", role == roles_.end() ? found->first : role->second,
                         found->second);
    }
    at = std::max(end, at + 1);
  }
  return out;
}

Shape TensorForm::shape() const {
  Shape shape;
  for (const AxisForm& axis : axes) shape.push_back(axis.extent);
  return shape;
}

int Pattern::find(std::string_view name) const {
  auto found = std::ranges::find(names, name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

Result<Pattern> parse_pattern(std::string_view text, const Dimensions& dimensions) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) return fail(ErrorKind::kInternal, "pattern \"{}\" has no arrow", text);
  Pattern pattern;
  MAXPORT_ASSIGN_OR_RETURN(pattern.huggingface, SideParser(text.substr(0, arrow), dimensions, pattern).parse());
  MAXPORT_ASSIGN_OR_RETURN(pattern.maxtext, SideParser(text.substr(arrow + 2), dimensions, pattern).parse());
  return pattern;
}

}  // namespace maxport::models
