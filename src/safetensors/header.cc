#include "safetensors/header.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/json.h"
#include "base/utf8.h"
#include "safetensors/header_sax.h"

namespace maxport::safetensors {
namespace {

Result<> check_text(ByteSpan json, std::string_view what) {
  if (json.size() > kMaxHeaderBytes)
    return fail(ErrorKind::kResourceLimit, "{}: header of {} bytes, the format allows {}", what, json.size(),
                kMaxHeaderBytes);
  const std::string_view text = as_text(json);
  if (text.starts_with("\xef\xbb\xbf"))
    return fail(ErrorKind::kCorruptData, "{}: header begins with a byte order mark", what);
  // The JSON library takes a NUL for the end of its input.
  if (const size_t at = text.find('\0'); at != std::string_view::npos)
    return fail(ErrorKind::kCorruptData, "{}: header holds a NUL byte at offset {}", what, 8 + at);
  if (!is_valid_utf8(text)) return fail(ErrorKind::kCorruptData, "{}: header is not valid UTF-8", what);
  return {};
}

/// Bytes of a tensor whose shape is already free of negatives; nothing on overflow.
std::optional<uint64_t> packed_bits(DType dtype, std::span<const int64_t> shape) {
  const auto count = checked_product(shape);
  if (!count) return std::nullopt;
  return checked_multiply(static_cast<uint64_t>(*count), static_cast<uint64_t>(dtype_info(dtype).bits));
}

Result<> check_size(const TensorInfo& tensor, std::string_view what) {
  const auto bits = packed_bits(tensor.dtype, tensor.shape);
  const auto& type = dtype_info(tensor.dtype);
  if (!bits)
    return fail(ErrorKind::kCorruptData, "{}: tensor {}: the size of shape {} overflows", what,
                quoted_name(tensor.name), shape_text(tensor.shape));
  if (*bits % 8 != 0)
    return fail(ErrorKind::kCorruptData, "{}: tensor {}: shape {} of {} ({} bits each) is not a whole number of bytes",
                what, quoted_name(tensor.name), shape_text(tensor.shape), type.safetensors, type.bits);
  if (*bits / 8 != tensor.byte_size())
    return fail(ErrorKind::kCorruptData,
                "{}: tensor {}: data_offsets [{}, {}] span {} bytes, but shape {} of {} needs {}", what,
                quoted_name(tensor.name), tensor.begin, tensor.end, tensor.byte_size(), shape_text(tensor.shape),
                type.safetensors, *bits / 8);
  return {};
}

/// Offsets are still relative to the end of the JSON. Sorts by position and demands that the tensors lie end to end.
Result<> check_dense(std::vector<TensorInfo>& tensors, std::string_view what) {
  std::ranges::sort(tensors, [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t expected = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& tensor = tensors[i];
    if (tensor.begin > expected)
      return fail(ErrorKind::kCorruptData, "{}: bytes {} to {} of the data before tensor {} belong to no tensor", what,
                  expected, tensor.begin, quoted_name(tensor.name));
    if (tensor.begin < expected)
      return fail(ErrorKind::kCorruptData, "{}: tensors {} and {} overlap: [{}, {}] and [{}, {}]", what,
                  quoted_name(tensors[i - 1].name), quoted_name(tensor.name), tensors[i - 1].begin, tensors[i - 1].end,
                  tensor.begin, tensor.end);
    expected = tensor.end;
  }
  return {};
}

/// Compares the end of the last tensor with the end of the file.
Result<> check_file_size(const std::vector<TensorInfo>& tensors, uint64_t data_begin, uint64_t file_size,
                         std::string_view what) {
  const uint64_t data_size = file_size - data_begin;
  const uint64_t used = tensors.empty() ? 0 : tensors.back().end;
  if (used == data_size) return {};
  if (used < data_size)
    return fail(ErrorKind::kCorruptData,
                "{}: {} bytes after the last tensor belong to no tensor: expected {} bytes, "
                "file has {}",
                what, data_size - used, data_begin + used, file_size);
  const auto cut = std::ranges::find_if(tensors, [&](const TensorInfo& tensor) { return tensor.end > data_size; });
  const auto expected = checked_add(data_begin, used);
  return fail(ErrorKind::kCorruptData,
              "{}: expected {} bytes, file has {} ({} missing); first tensor cut is {}: the file is truncated, "
              "download it again",
              what, expected ? std::to_string(*expected) : "more than 2^64", file_size, used - data_size,
              quoted_name(cut->name));
}

Result<std::vector<uint32_t>> index_names(const std::vector<TensorInfo>& tensors, std::string_view what) {
  std::vector<uint32_t> index(tensors.size());
  std::iota(index.begin(), index.end(), uint32_t{0});
  std::ranges::sort(index, {}, [&](uint32_t i) -> const std::string& { return tensors[i].name; });
  for (size_t i = 1; i < index.size(); ++i)
    if (tensors[index[i]].name == tensors[index[i - 1]].name)
      return fail(ErrorKind::kCorruptData, "{}: tensor {} is listed twice", what, quoted_name(tensors[index[i]].name));
  return index;
}

}  // namespace

std::string quoted_name(std::string_view name) {
  constexpr size_t kShown = 200;
  if (name.size() <= kShown) return fmt::format("\"{}\"", printable(name));
  return fmt::format("\"{}...\" ({} bytes)", printable(name.substr(0, kShown)), name.size());
}

const TensorInfo* Header::find(std::string_view name) const {
  const auto at =
      std::ranges::lower_bound(by_name, name, {}, [&](uint32_t i) -> std::string_view { return tensors[i].name; });
  if (at == by_name.end() || tensors[*at].name != name) return nullptr;
  return &tensors[*at];
}

Result<uint64_t> tensor_byte_size(DType dtype, std::span<const int64_t> shape) {
  const auto& type = dtype_info(dtype);
  if (type.safetensors.empty())
    return fail(ErrorKind::kUnsupported, "the safetensors format has no type for {}", type.name);
  const auto bits = packed_bits(dtype, shape);
  if (!bits) return fail(ErrorKind::kInvalidArgument, "the size of shape {} overflows", shape_text(shape));
  if (*bits % 8 != 0)
    return fail(ErrorKind::kInvalidArgument, "shape {} of {} ({} bits each) is not a whole number of bytes",
                shape_text(shape), type.safetensors, type.bits);
  return *bits / 8;
}

Result<Header> parse_header(ByteSpan header_json, uint64_t file_size, std::string_view what, MetadataPolicy policy) {
  MAXPORT_RETURN_IF_ERROR(check_text(header_json, what));
  const uint64_t data_begin = 8 + uint64_t{header_json.size()};
  if (data_begin > file_size)
    return fail(ErrorKind::kCorruptData, "{}: header ends at byte {}, but the file has {}", what, data_begin,
                file_size);
  HeaderSax sax(policy);
  if (!Json::sax_parse(as_text(header_json), &sax)) return fail(sax.problem_kind(), "{}: {}", what, sax.problem());
  Header header = sax.take();
  // Duplicates come before sizes: a repeated name is the clearer message when both are wrong.
  MAXPORT_RETURN_IF_ERROR(index_names(header.tensors, what));
  for (const TensorInfo& tensor : header.tensors) MAXPORT_RETURN_IF_ERROR(check_size(tensor, what));
  MAXPORT_RETURN_IF_ERROR(check_dense(header.tensors, what));
  MAXPORT_RETURN_IF_ERROR(check_file_size(header.tensors, data_begin, file_size, what));
  for (TensorInfo& tensor : header.tensors) {
    tensor.begin += data_begin;
    tensor.end += data_begin;
  }
  MAXPORT_ASSIGN_OR_RETURN(header.by_name, index_names(header.tensors, what));
  return header;
}

}  // namespace maxport::safetensors
