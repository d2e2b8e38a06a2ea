#include "safetensors/header_sax.h"

#include <limits>

namespace maxport::safetensors {
namespace {

/// Distinct unknown field names and metadata notes that are reported; the rest is only counted.
constexpr size_t kMaxNotes = 16;

std::string known_dtypes() {
  std::string names;
  for (const DTypeInfo& row : all_dtypes())
    if (!row.safetensors.empty()) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.safetensors);
  return names;
}

}  // namespace

Header HeaderSax::take() {
  for (const auto& [field, count] : unknown_counts_)
    header_.notes.push_back(fmt::format("{} of the entries carry a field {} that is not part of the format; ignored",
                                        count, quoted_name(field)));
  return std::move(header_);
}

bool HeaderSax::reject(std::string problem, ErrorKind kind) {
  if (problem_.empty()) {
    problem_ = std::move(problem);
    problem_kind_ = kind;
  }
  return false;
}

std::string HeaderSax::current_tensor() const { return "tensor " + quoted_name(header_.tensors.back().name); }

bool HeaderSax::unexpected(std::string_view found) {
  switch (expect_) {
    case Expect::kRoot:
      return reject(fmt::format("header is {}, expected an object", found));
    case Expect::kEntry:
      return reject(fmt::format("{} is {}, expected an object", current_tensor(), found));
    case Expect::kDtype:
      return reject(fmt::format("{}: dtype is {}, expected a string", current_tensor(), found));
    case Expect::kShape:
      return reject(fmt::format("{}: shape is {}, expected an array", current_tensor(), found));
    case Expect::kOffsets:
      return reject(fmt::format("{}: data_offsets is {}, expected an array", current_tensor(), found));
    case Expect::kExtent:
      return reject(fmt::format("{}: shape holds {}, expected plain non-negative integers", current_tensor(), found));
    case Expect::kOffset:
      return reject(
          fmt::format("{}: data_offsets holds {}, expected plain non-negative integers", current_tensor(), found));
    case Expect::kMetadata:
    case Expect::kMetadataValue: {
      std::string text = expect_ == Expect::kMetadata
                             ? fmt::format("__metadata__ is {}, expected an object", found)
                             : fmt::format("__metadata__: the value of {} is {}, expected a string",
                                           quoted_name(metadata_name_), found);
      if (policy_ == MetadataPolicy::kStrict) return reject(std::move(text));
      if (header_.notes.size() < kMaxNotes) header_.notes.push_back(std::move(text));
      return true;
    }
    case Expect::kIgnored:
      return true;
  }
  return reject("unexpected value");
}

bool HeaderSax::scalar(std::string_view found) { return expect_ == Expect::kIgnored || unexpected(found); }

bool HeaderSax::null() {
  if (expect_ == Expect::kMetadata) return true;  // the reference library takes null for an empty map
  return scalar("null");
}

bool HeaderSax::boolean(bool) { return scalar("a boolean"); }
bool HeaderSax::number_integer(number_integer_t value) { return scalar(fmt::format("the number {}", value)); }
bool HeaderSax::number_float(number_float_t, const string_t& text) {
  return scalar(fmt::format("the number {}", printable(std::string_view(text).substr(0, 40))));
}
bool HeaderSax::binary(binary_t&) { return reject("binary value"); }

bool HeaderSax::number_unsigned(number_unsigned_t value) {
  if (expect_ == Expect::kExtent) return extent(value);
  if (expect_ == Expect::kOffset) return offset(value);
  return scalar(fmt::format("the number {}", value));
}

bool HeaderSax::string(string_t& value) {
  if (expect_ == Expect::kDtype) {
    const auto dtype = dtype_from_safetensors(value);
    if (!dtype)
      return reject(
          fmt::format("{}: unknown dtype {}, known are {}", current_tensor(), quoted_name(value), known_dtypes()));
    header_.tensors.back().dtype = *dtype;
    return true;
  }
  if (expect_ == Expect::kMetadataValue) {
    header_.metadata[metadata_name_] = std::move(value);
    return true;
  }
  return scalar("a string");
}

bool HeaderSax::extent(uint64_t value) {
  Shape& shape = header_.tensors.back().shape;
  if (shape.size() == static_cast<size_t>(kMaxRank))
    return reject(fmt::format("{}: more than {} dimensions", current_tensor(), kMaxRank), ErrorKind::kResourceLimit);
  constexpr auto kLargest = std::numeric_limits<int64_t>::max();
  const bool too_large = value > static_cast<uint64_t>(kLargest);
  extent_too_large_ |= too_large;
  zero_extent_ |= value == 0;
  shape.push_back(too_large ? kLargest : static_cast<int64_t>(value));
  return true;
}

bool HeaderSax::offset(uint64_t value) {
  TensorInfo& tensor = header_.tensors.back();
  if (offset_count_ == 0) tensor.begin = value;
  if (offset_count_ == 1) tensor.end = value;
  if (++offset_count_ > 2) return reject(fmt::format("{}: data_offsets has more than two entries", current_tensor()));
  return true;
}

bool HeaderSax::ignore_container() {
  if (++ignored_depth_ > kMaxHeaderDepth)
    return reject(fmt::format("nested deeper than {}", kMaxHeaderDepth), ErrorKind::kResourceLimit);
  return true;
}

bool HeaderSax::start_object(size_t) {
  switch (expect_) {
    case Expect::kIgnored:
      return ignore_container();
    case Expect::kRoot:
      inside_ = Inside::kTop;
      return true;
    case Expect::kEntry:
      inside_ = Inside::kEntry;
      has_dtype_ = has_shape_ = has_offsets_ = extent_too_large_ = zero_extent_ = false;
      offset_count_ = 0;
      unknown_fields_.clear();
      return true;
    case Expect::kMetadata:
      inside_ = Inside::kMetadata;
      return true;
    default:
      break;
  }
  if (!unexpected("an object")) return false;
  expect_ = Expect::kIgnored;
  return ignore_container();
}

bool HeaderSax::start_array(size_t) {
  switch (expect_) {
    case Expect::kIgnored:
      return ignore_container();
    case Expect::kShape:
      expect_ = Expect::kExtent;
      return true;
    case Expect::kOffsets:
      expect_ = Expect::kOffset;
      return true;
    default:
      break;
  }
  if (!unexpected("an array")) return false;
  expect_ = Expect::kIgnored;
  return ignore_container();
}

bool HeaderSax::end_array() {
  if (ignored_depth_ > 0) {
    --ignored_depth_;
    return true;
  }
  if (expect_ == Expect::kOffset && offset_count_ != 2)
    return reject(fmt::format("{}: data_offsets has {} entries, expected 2", current_tensor(), offset_count_));
  return true;
}

bool HeaderSax::end_object() {
  if (ignored_depth_ > 0) {
    --ignored_depth_;
    return true;
  }
  if (inside_ == Inside::kEntry && !finish_entry()) return false;
  inside_ = inside_ == Inside::kTop ? Inside::kNothing : Inside::kTop;
  return true;
}

bool HeaderSax::key(string_t& name) {
  if (ignored_depth_ > 0) return true;
  switch (inside_) {
    case Inside::kTop:
      return top_key(name);
    case Inside::kEntry:
      return entry_key(name);
    default:
      return metadata_key(name);
  }
}

bool HeaderSax::top_key(std::string& name) {
  if (name == kMetadataKey) {
    if (has_metadata_) return reject("__metadata__ occurs twice");
    has_metadata_ = true;
    expect_ = Expect::kMetadata;
    return true;
  }
  header_.tensors.emplace_back().name = std::move(name);
  expect_ = Expect::kEntry;
  return true;
}

bool HeaderSax::entry_key(const std::string& name) {
  const auto known = [&](bool& seen, Expect next) {
    if (seen) return reject(fmt::format("{}: field \"{}\" occurs twice", current_tensor(), name));
    seen = true;
    expect_ = next;
    return true;
  };
  if (name == "dtype") return known(has_dtype_, Expect::kDtype);
  if (name == "shape") return known(has_shape_, Expect::kShape);
  if (name == "data_offsets") return known(has_offsets_, Expect::kOffsets);
  if (!unknown_fields_.insert(name).second)
    return reject(fmt::format("{}: field {} occurs twice", current_tensor(), quoted_name(name)));
  if (unknown_counts_.size() < kMaxNotes || unknown_counts_.contains(name)) ++unknown_counts_[name];
  expect_ = Expect::kIgnored;
  return true;
}

bool HeaderSax::metadata_key(std::string& name) {
  if (header_.metadata.contains(name)) return reject(fmt::format("__metadata__: {} occurs twice", quoted_name(name)));
  metadata_name_ = std::move(name);
  expect_ = Expect::kMetadataValue;
  return true;
}

bool HeaderSax::finish_entry() {
  const TensorInfo& tensor = header_.tensors.back();
  for (const auto& [present, field] :
       {std::pair{has_dtype_, "dtype"}, std::pair{has_shape_, "shape"}, std::pair{has_offsets_, "data_offsets"}})
    if (!present) return reject(fmt::format("{}: {} is missing", current_tensor(), field));
  if (tensor.begin > tensor.end)
    return reject(fmt::format("{}: data_offsets [{}, {}] are reversed", current_tensor(), tensor.begin, tensor.end));
  if (!extent_too_large_) return true;
  if (!zero_extent_) return reject(fmt::format("{}: the size of its shape overflows", current_tensor()));
  if (header_.notes.size() < kMaxNotes)
    header_.notes.push_back(fmt::format("{} is empty; its extents above 2^63-1 are shown as that", current_tensor()));
  return true;
}

bool HeaderSax::parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
  std::string_view text = error.what();
  if (const auto end = text.find("] "); end != std::string_view::npos) text.remove_prefix(end + 2);
  return reject(fmt::format("header is not valid JSON at byte {}: {}", 8 + position, printable(text.substr(0, 300))));
}

}  // namespace maxport::safetensors
