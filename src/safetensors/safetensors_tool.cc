// For developers and for the interoperability tests: the reader and the writer on the command line.
//
//   safetensors_tool list FILE         one JSON object a tensor, in file order; metadata first
//   safetensors_tool dump FILE NAME    stored bytes of a tensor on standard output
//   safetensors_tool copy FILE OUTPUT  the same tensors and metadata, written anew in small pieces
#include <cstdio>

#include "base/json.h"
#include "safetensors/file.h"
#include "safetensors/writer.h"

namespace maxport::safetensors {
namespace {

constexpr uint64_t kPieceBytes = 1 << 16;

/// Hands a tensor's bytes to `take` piece by piece.
template <class Take>
Result<> for_each_piece(const File& file, const TensorInfo& tensor, Take take) {
  Bytes piece;
  for (uint64_t at = 0; at < tensor.byte_size(); at += piece.size()) {
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, tensor.byte_size() - at)));
    MAXPORT_RETURN_IF_ERROR(file.read(tensor, at, piece));
    MAXPORT_RETURN_IF_ERROR(take(at, ByteSpan(piece)));
  }
  return {};
}

Result<> list(const File& file) {
  fmt::print("{}\n", Json{{"metadata", file.metadata()}, {"notes", file.notes()}}.dump());
  for (const TensorInfo& tensor : file.tensors())
    fmt::print("{}\n", Json{{"name", tensor.name},
                            {"dtype", dtype_info(tensor.dtype).safetensors},
                            {"shape", tensor.shape},
                            {"begin", tensor.begin},
                            {"end", tensor.end}}
                           .dump());
  return {};
}

Result<> dump(const File& file, std::string_view name) {
  const TensorInfo* tensor = file.find(name);
  if (tensor == nullptr) return fail(ErrorKind::kNotFound, "{} holds no tensor {}", file.path(), quoted_name(name));
  return for_each_piece(file, *tensor, [](uint64_t, ByteSpan bytes) -> Result<> {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size()) return {};
    return fail(ErrorKind::kIo, "writing to standard output failed");
  });
}

Result<> copy(const File& file, const std::string& output) {
  std::vector<TensorSpec> specs;
  for (const TensorInfo& tensor : file.tensors()) specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  MAXPORT_ASSIGN_OR_RETURN(Layout layout, layout_file(specs, Order::kReference, file.metadata()));
  MAXPORT_ASSIGN_OR_RETURN(auto writer, FileWriter::create(local_storage(), output, std::move(layout)));
  for (size_t i = 0; i < specs.size(); ++i)
    MAXPORT_RETURN_IF_ERROR(for_each_piece(file, file.tensors()[i],
                                           [&](uint64_t at, ByteSpan bytes) { return writer->write(i, at, bytes); }));
  return writer->finish();
}

Result<> run(int count, char** arguments) {
  const std::string_view command = count > 1 ? arguments[1] : "";
  const bool good = (command == "list" && count == 3) || ((command == "dump" || command == "copy") && count == 4);
  if (!good)
    return fail(ErrorKind::kInvalidArgument, "usage: safetensors_tool list FILE | dump FILE NAME | copy FILE OUTPUT");
  MAXPORT_ASSIGN_OR_RETURN(const auto file, File::open(local_storage(), arguments[2]));
  if (command == "list") return list(*file);
  return command == "dump" ? dump(*file, arguments[3]) : copy(*file, arguments[3]);
}

}  // namespace
}  // namespace maxport::safetensors

int main(int count, char** arguments) {
  const auto result = maxport::safetensors::run(count, arguments);
  if (result) return 0;
  fmt::print(stderr, "{}\n", result.error().message());
  return maxport::exit_code(result.error().kind());
}
