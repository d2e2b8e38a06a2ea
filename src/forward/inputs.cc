#include "forward/inputs.h"

#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "base/json.h"
#include "safetensors/file.h"
#include "safetensors/writer.h"
#include "tensor/cast.h"

namespace maxport::forward {
namespace {

// Reference logits of this many elements (8 GB) are more than a comparison on one machine is for.
constexpr int64_t kMaxElements = int64_t{1} << 31;
constexpr uint64_t kMaxTextBytes = uint64_t{4} << 30;

std::vector<int32_t> row_of(const std::vector<int32_t>& ids, int64_t row, int64_t length) {
  return {ids.begin() + row * length, ids.begin() + (row + 1) * length};
}

Result<std::vector<int32_t>> read_ids(const safetensors::File& file, const safetensors::TensorInfo& info) {
  if (info.dtype != DType::kInt32 && info.dtype != DType::kInt64)
    return fail(ErrorKind::kInvalidArgument, "{}: {} must be int32 or int64, but is {}", printable(file.path()),
                info.name, dtype_name(info.dtype));
  const auto count = checked_product(info.shape);
  if (!count || *count > kMaxElements)
    return fail(ErrorKind::kResourceLimit, "{}: too many {}", printable(file.path()), info.name);
  Bytes stored(static_cast<size_t>(*count * dtype_bytes(info.dtype)));
  MAXPORT_RETURN_IF_ERROR(file.read(info, 0, stored));
  std::vector<int32_t> out(static_cast<size_t>(*count));
  cast(info.dtype, stored, DType::kInt32, std::as_writable_bytes(std::span(out)));
  return out;
}

/// The sequences of ids that lie one after another.
Result<Batch> cut(const std::vector<int32_t>& ids, const std::vector<int32_t>& lengths, const std::string& path) {
  Batch out;
  auto begin = ids.begin();
  for (const int32_t length : lengths) {
    if (length < 1 || length > ids.end() - begin)
      return fail(ErrorKind::kInvalidArgument, "{}: lengths holds {}, but {} of {} input_ids are left", printable(path),
                  length, ids.end() - begin, ids.size());
    out.append({begin, begin + length});
    begin += length;
  }
  if (begin != ids.end())
    return fail(ErrorKind::kInvalidArgument, "{}: lengths adds up to {}, but there are {} input_ids", printable(path),
                begin - ids.begin(), ids.size());
  return out;
}

Result<Matrix> read_logits(const safetensors::File& file, const safetensors::TensorInfo& info, int64_t tokens) {
  const int64_t vocabulary = info.shape.empty() ? 0 : info.shape.back();
  const auto count = checked_product(info.shape);
  if (!is_floating(info.dtype) || !count || *count != tokens * vocabulary)
    return fail(ErrorKind::kInvalidArgument, "{}: logits of type {} and shape {} do not belong to {} input_ids",
                printable(file.path()), dtype_name(info.dtype), shape_text(info.shape), tokens);
  if (*count > kMaxElements) return fail(ErrorKind::kResourceLimit, "{}: too many logits", printable(file.path()));
  Bytes stored(static_cast<size_t>(*count * dtype_bytes(info.dtype)));
  MAXPORT_RETURN_IF_ERROR(file.read(info, 0, stored));
  Matrix out(tokens, vocabulary);
  cast(info.dtype, stored, DType::kFloat32, std::as_writable_bytes(std::span(out.data)));
  return out;
}

Result<Golden> from_safetensors(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const auto file, safetensors::File::open(storage, path));
  const safetensors::TensorInfo* ids = file->find("input_ids");
  if (ids == nullptr || ids->shape.empty() || ids->shape.size() > 2)
    return fail(ErrorKind::kInvalidArgument, "{}: there is no tensor input_ids of shape [batch, length]",
                printable(path));
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<int32_t> values, read_ids(*file, *ids));
  const int64_t length = ids->shape.back(), rows = ids->shape.size() == 2 ? ids->shape[0] : 1;
  if (length == 0)
    return fail(ErrorKind::kInvalidArgument, "{}: the sequences of input_ids are empty", printable(path));
  Golden out;
  if (const safetensors::TensorInfo* lengths = file->find("lengths"); lengths != nullptr && ids->shape.size() == 1) {
    MAXPORT_ASSIGN_OR_RETURN(const std::vector<int32_t> counts, read_ids(*file, *lengths));
    MAXPORT_ASSIGN_OR_RETURN(out.batch, cut(values, counts, path));
  } else {
    for (int64_t row = 0; row < rows; ++row) out.batch.append(row_of(values, row, length));
  }
  if (const safetensors::TensorInfo* logits = file->find("logits")) {
    MAXPORT_ASSIGN_OR_RETURN(out.logits, read_logits(*file, *logits, out.batch.tokens()));
  }
  return out;
}

/// Appends rows of numbers; all must be equally long.
Result<> append_rows(const Json& rows, size_t count, Matrix& out, const std::string& what) {
  if (!rows.is_array() || rows.size() != count)
    return fail(ErrorKind::kInvalidArgument, "{}: \"logits\" must have one row for each of {} tokens", what, count);
  for (const Json& row : rows) {
    if (!row.is_array() || row.empty() || (out.cols != 0 && static_cast<int64_t>(row.size()) != out.cols))
      return fail(ErrorKind::kInvalidArgument, "{}: the rows of \"logits\" must be lists of one length", what);
    out.cols = static_cast<int64_t>(row.size());
    ++out.rows;
    for (const Json& value : row) {
      if (!value.is_number())
        return fail(ErrorKind::kInvalidArgument, "{}: \"logits\" holds {}", what, json_kind(value));
      out.data.push_back(value.get<float>());
    }
  }
  return {};
}

Result<> append_line(std::string_view line, const std::string& what, Golden& out, Matrix& logits) {
  MAXPORT_ASSIGN_OR_RETURN(const Json point, parse_json(line, what));
  if (!point.is_object() || !point.contains("tokens") || !point["tokens"].is_array())
    return fail(ErrorKind::kInvalidArgument, "{}: there is no list \"tokens\"", what);
  std::vector<int32_t> ids;
  for (const Json& id : point["tokens"]) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX)
      return fail(ErrorKind::kInvalidArgument, "{}: \"tokens\" must hold ids", what);
    ids.push_back(id.get<int32_t>());
  }
  if (ids.empty()) return fail(ErrorKind::kInvalidArgument, "{}: \"tokens\" is empty", what);
  out.batch.append(ids);
  return point.contains("logits") ? append_rows(point["logits"], ids.size(), logits, what) : Result<>{};
}

Result<Golden> from_lines(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, storage.read_text(path, kMaxTextBytes));
  Golden out;
  Matrix logits;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    MAXPORT_RETURN_IF_ERROR(append_line(line, fmt::format("{}, line {}", printable(path), number), out, logits));
  }
  if (logits.rows == out.batch.tokens() && logits.rows > 0)
    out.logits = std::move(logits);
  else if (logits.rows > 0)
    return fail(ErrorKind::kInvalidArgument, "{}: some lines have no \"logits\"", printable(path));
  return out;
}

}  // namespace

Result<Batch> parse_ids(std::string_view text) {
  Batch out;
  std::vector<int32_t> sequence;
  const auto finish = [&] {
    if (!sequence.empty()) out.append(sequence);
    sequence.clear();
  };
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == ';' || c == '\n') finish();
    if (c == ';' || c == '\n' || c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '[' || c == ']') {
      ++i;
      continue;
    }
    int32_t id = -1;
    const auto [end, status] = std::from_chars(text.data() + i, text.data() + text.size(), id);
    if (status != std::errc{} || id < 0)
      return fail(ErrorKind::kInvalidArgument, "\"{}\" is no token id; ids are whole numbers from 0 on, like 1,15,7",
                  printable(text.substr(i, 20)));
    sequence.push_back(id);
    i = static_cast<size_t>(end - text.data());
  }
  finish();
  if (out.tokens() == 0) return fail(ErrorKind::kInvalidArgument, "there is no token id");
  return out;
}

Result<Golden> read_golden(Storage& storage, const std::string& path) {
  if (path.ends_with(".safetensors")) return from_safetensors(storage, path);
  if (path.ends_with(".jsonl")) return from_lines(storage, path);
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, storage.read_text(path));
  MAXPORT_ASSIGN_OR_RETURN(Batch batch, with_context(parse_ids(text), printable(path)));
  return Golden{std::move(batch), {}};
}

Result<> write_golden(Storage& storage, const std::string& path, const Batch& batch, const Matrix& logits) {
  std::vector<int64_t> lengths;
  for (const Batch::Sequence& sequence : batch.sequences) lengths.push_back(sequence.length);
  const auto count = static_cast<int64_t>(lengths.size());
  const bool even = std::ranges::all_of(lengths, [&](int64_t length) { return length == lengths[0]; });
  Shape ids = even ? Shape{count, lengths[0]} : Shape{batch.tokens()}, values = ids;
  values.push_back(logits.cols);
  std::vector<safetensors::TensorSpec> specs = {{"input_ids", DType::kInt32, ids}, {"logits", DType::kFloat32, values}};
  if (!even) specs.push_back({"lengths", DType::kInt64, {count}});
  MAXPORT_ASSIGN_OR_RETURN(auto layout, safetensors::layout_file(specs));
  const std::string partial = path + ".partial";
  MAXPORT_ASSIGN_OR_RETURN(const auto file, safetensors::FileWriter::create(storage, partial, std::move(layout)));
  MAXPORT_RETURN_IF_ERROR(file->write(0, 0, std::as_bytes(std::span(batch.ids))));
  MAXPORT_RETURN_IF_ERROR(file->write(1, 0, std::as_bytes(std::span(logits.data))));
  if (!even) MAXPORT_RETURN_IF_ERROR(file->write(2, 0, std::as_bytes(std::span(lengths))));
  MAXPORT_RETURN_IF_ERROR(file->finish());
  return storage.rename(partial, path);
}

}  // namespace maxport::forward
