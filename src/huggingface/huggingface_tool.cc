// For developers and for the interoperability tests: model folders on the command line.
//
//   huggingface_tool show FOLDER               what was understood of config, index and headers, as JSON
//   huggingface_tool copy FOLDER OUTPUT SIZE   the same model, in files of at most SIZE (e.g. 5GB), in order of names
#include <cstdio>

#include "huggingface/model_directory.h"
#include "huggingface/writer.h"

namespace maxport::huggingface {
namespace {

constexpr uint64_t kPieceBytes = 1 << 16;

Result<> show(const ModelDirectory& model) {
  const ConfigRoles& roles = model.roles();
  Json fields = Json::object();
  for (const char* role : {"num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim",
                           "intermediate_size", "vocab_size", "num_experts"}) {
    MAXPORT_ASSIGN_OR_RETURN(const auto value, roles.optional_integer(role));
    fields[role] = {{"value", value ? Json(*value) : Json()}, {"source", roles.source_of(role)}};
  }
  Json files = Json::array();
  for (const auto& shard : model.files())
    files.push_back(
        {{"name", shard->name}, {"tensors", shard->header.tensors.size()}, {"digest", shard->header_digest}});
  fmt::print("{}\n", Json{{"folder", model.folder()},
                          {"model_type", roles.model_type()},
                          {"fields", fields},
                          {"tensors", model.tensors().size()},
                          {"files", files},
                          {"warnings", model.warnings()}}
                         .dump(2));
  return {};
}

Result<> copy_tensor(const ModelDirectory& model, const TensorEntry& tensor, ShardedWriter& writer, size_t index) {
  Bytes piece;
  for (uint64_t at = 0; at < tensor.info->byte_size(); at += piece.size()) {
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, tensor.info->byte_size() - at)));
    MAXPORT_RETURN_IF_ERROR(model.read(tensor, at, piece));
    MAXPORT_RETURN_IF_ERROR(writer.write(index, at, piece));
  }
  return {};
}

Result<> copy(const ModelDirectory& model, const std::string& output, const std::string& max_shard_size) {
  std::vector<safetensors::TensorSpec> specs;
  for (const auto& [name, tensor] : model.tensors())
    specs.push_back({std::string(name), tensor.info->dtype, tensor.info->shape});
  MAXPORT_ASSIGN_OR_RETURN(const auto side_files, find_side_files(local_storage(), model.folder()));
  MAXPORT_ASSIGN_OR_RETURN(const auto writer, ShardedWriter::create(local_storage(), output, std::move(specs),
                                                                    {.max_shard_size = max_shard_size}));
  size_t index = 0;
  for (const auto& [name, tensor] : model.tensors())
    MAXPORT_RETURN_IF_ERROR(copy_tensor(model, tensor, *writer, index++));
  MAXPORT_RETURN_IF_ERROR(copy_side_files(local_storage(), side_files, local_storage(), writer->working_folder()));
  return writer->publish(model.config());
}

Result<> run(int count, char** arguments) {
  const std::string_view command = count > 1 ? arguments[1] : "";
  if (!(command == "show" && count == 3) && !(command == "copy" && count == 5))
    return fail(ErrorKind::kInvalidArgument, "usage: huggingface_tool show FOLDER | copy FOLDER OUTPUT SIZE");
  MAXPORT_ASSIGN_OR_RETURN(const auto model, ModelDirectory::open(local_storage(), arguments[2]));
  return command == "show" ? show(*model) : copy(*model, arguments[3], arguments[4]);
}

}  // namespace
}  // namespace maxport::huggingface

int main(int count, char** arguments) {
  const auto result = maxport::huggingface::run(count, arguments);
  if (result) return 0;
  fmt::print(stderr, "{}\n", result.error().message());
  return maxport::exit_code(result.error().kind());
}
