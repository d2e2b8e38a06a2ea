#include "safetensors/writer.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "base/checked.h"
#include "base/json.h"
#include "base/utf8.h"

namespace maxport::safetensors {
namespace {

constexpr std::array kReferenceOrder = {
    DType::kBool,           DType::kFloat4E2m1fn, DType::kFloat6E2m3fn, DType::kFloat6E3m2fn,  DType::kUint8,
    DType::kInt8,           DType::kFloat8E5m2,   DType::kFloat8E4m3fn, DType::kFloat8E8m0fnu, DType::kFloat8E4m3fnuz,
    DType::kFloat8E5m2fnuz, DType::kInt16,        DType::kUint16,       DType::kFloat16,       DType::kBfloat16,
    DType::kInt32,          DType::kUint32,       DType::kFloat32,      DType::kComplex64,     DType::kFloat64,
    DType::kInt64,          DType::kUint64};

size_t reference_rank(DType dtype) {
  return static_cast<size_t>(std::ranges::find(kReferenceOrder, dtype) - kReferenceOrder.begin());
}

std::string quoted_json(std::string_view text) { return Json(text).dump(); }

std::vector<size_t> order_of(std::span<const TensorSpec> tensors, Order order) {
  std::vector<size_t> sequence(tensors.size());
  std::iota(sequence.begin(), sequence.end(), size_t{0});
  if (order == Order::kReference)
    std::ranges::sort(sequence, [&](size_t a, size_t b) {
      const size_t left = reference_rank(tensors[a].dtype), right = reference_rank(tensors[b].dtype);
      return left != right ? left > right : tensors[a].name < tensors[b].name;
    });
  return sequence;
}

Result<> check_names(std::span<const TensorSpec> tensors) {
  std::set<std::string_view> seen;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name == kMetadataKey)
      return fail(ErrorKind::kInvalidArgument, "a tensor cannot be called {}, which the format reserves", kMetadataKey);
    if (!is_valid_utf8(tensor.name))
      return fail(ErrorKind::kInvalidArgument, "tensor name {} is not valid UTF-8", quoted_name(tensor.name));
    if (!seen.insert(tensor.name).second)
      return fail(ErrorKind::kInvalidArgument, "tensor {} is to be written twice", quoted_name(tensor.name));
  }
  return {};
}

/// Relative byte ranges in the order of the file, for tensors in the order of the specs.
Result<uint64_t> place(std::span<const TensorSpec> tensors, std::span<const size_t> sequence, Layout& layout) {
  uint64_t at = 0;
  for (size_t i : sequence) {
    auto size = tensor_byte_size(tensors[i].dtype, tensors[i].shape);
    if (!size) return with_context(std::move(size), fmt::format("tensor {}", quoted_name(tensors[i].name)));
    const auto end = checked_add(at, *size);
    if (!end || *end > uint64_t{1} << 62)
      return fail(ErrorKind::kInvalidArgument, "the tensors up to {} do not fit into one file",
                  quoted_name(tensors[i].name));
    layout.tensors[i] = {tensors[i].name, tensors[i].dtype, tensors[i].shape, at, *end};
    at = *end;
  }
  return at;
}

std::string entry_json(const TensorInfo& tensor) {
  return fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted_json(tensor.name),
                     dtype_info(tensor.dtype).safetensors, fmt::join(tensor.shape, ","), tensor.begin, tensor.end);
}

}  // namespace

uint64_t header_bytes_of(const TensorSpec& tensor) {
  // Twenty digits are the most a 64-bit number has; punctuation and keys are below 64 bytes.
  return quoted_json(tensor.name).size() + 21 * tensor.shape.size() + 2 * 20 + 64;
}

Result<Layout> layout_file(std::span<const TensorSpec> tensors, Order order,
                           const std::map<std::string, std::string>& metadata) {
  MAXPORT_RETURN_IF_ERROR(check_names(tensors));
  Layout layout;
  layout.tensors.resize(tensors.size());
  const std::vector<size_t> sequence = order_of(tensors, order);
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t data_size, place(tensors, sequence, layout));
  std::string json = "{";
  if (!metadata.empty()) json += fmt::format("{}:{}", quoted_json(kMetadataKey), Json(metadata).dump());
  for (size_t i : sequence) {
    if (json.size() > 1) json += ',';
    json += entry_json(layout.tensors[i]);
    if (json.size() > kMaxHeaderBytes) break;
  }
  json += '}';
  json.append((8 - json.size() % 8) % 8, ' ');
  if (json.size() > kMaxHeaderBytes)
    return fail(ErrorKind::kResourceLimit,
                "a header for {} tensors needs more than the {} bytes that the format allows; "
                "write them to more files",
                tensors.size(), kMaxHeaderBytes);
  layout.header.resize(8);
  store_le<uint64_t>(json.size(), reinterpret_cast<std::byte*>(layout.header.data()));
  layout.header += json;
  for (TensorInfo& tensor : layout.tensors) {
    tensor.begin += layout.header.size();
    tensor.end += layout.header.size();
  }
  layout.file_size = layout.header.size() + data_size;
  return layout;
}

Result<std::unique_ptr<FileWriter>> FileWriter::start(Storage& storage, const std::string& path, Layout layout,
                                                      bool truncate) {
  MAXPORT_ASSIGN_OR_RETURN(auto file, storage.create(path, truncate));
  file->reserve(layout.file_size);
  MAXPORT_RETURN_IF_ERROR(file->write_at(0, as_bytes(layout.header)));
  return std::unique_ptr<FileWriter>(new FileWriter(std::move(file), std::move(layout)));
}

Result<std::unique_ptr<FileWriter>> FileWriter::create(Storage& storage, const std::string& path, Layout layout) {
  return start(storage, path, std::move(layout), true);
}

Result<std::unique_ptr<FileWriter>> FileWriter::resume(Storage& storage, const std::string& path, Layout layout) {
  return start(storage, path, std::move(layout), false);
}

Result<> FileWriter::write(size_t index, uint64_t byte_offset, ByteSpan bytes) {
  MAXPORT_CHECK(index < layout_.tensors.size());
  const TensorInfo& tensor = layout_.tensors[index];
  if (byte_offset > tensor.byte_size() || bytes.size() > tensor.byte_size() - byte_offset)
    return fail(ErrorKind::kInvalidArgument, "{}: tensor {}: {} bytes given for byte {}, it has {}", printable(path()),
                quoted_name(tensor.name), bytes.size(), byte_offset, tensor.byte_size());
  return with_context(file_->write_at(tensor.begin + byte_offset, bytes),
                      fmt::format("writing tensor {}", quoted_name(tensor.name)));
}

Result<> FileWriter::finish() {
  MAXPORT_RETURN_IF_ERROR(file_->sync());
  return file_->close();
}

}  // namespace maxport::safetensors
