#include "inspect/inspect.h"

#include <algorithm>
#include <numeric>

#include "convert/path_kind.h"
#include "convert/to_maxtext.h"
#include "huggingface/model_directory.h"
#include "inspect/roles.h"
#include "maxtext/tree_layout.h"
#include "models/family.h"
#include "orbax/checkpoint.h"

namespace maxport::inspect {
namespace {

constexpr uint64_t kMaxRecordBytes = uint64_t{256} << 20;

std::string codec_text(const zarr::Codec& codec) {
  switch (codec.kind) {
    case zarr::CodecKind::kTranspose: return "transpose";
    case zarr::CodecKind::kBytes: return codec.big_endian ? "bytes (big endian)" : "bytes";
    case zarr::CodecKind::kSharding: return "sharding";
    case zarr::CodecKind::kBlosc: return "blosc " + printable(codec.compressor);
    case zarr::CodecKind::kZstd: return "zstd";
    case zarr::CodecKind::kGzip: return "gzip";
    case zarr::CodecKind::kZlib: return "zlib";
    case zarr::CodecKind::kBzip2: return "bz2";
    case zarr::CodecKind::kCrc32c: return "crc32c";
  }
  return "";
}

std::string codecs_text(const std::vector<zarr::Codec>& codecs) {
  std::string out;
  for (const zarr::Codec& codec : codecs) {
    if (!out.empty()) out += ", ";
    out += codec_text(codec);
    if (codec.sharding) out += fmt::format(" into {} ({})", shape_text(codec.sharding->chunk_shape), codecs_text(codec.sharding->codecs));
  }
  return out;
}

void add_family(const huggingface::ConfigRoles& config, Inspection& out) {
  const bool head = std::ranges::any_of(out.tensors, [](const Tensor& tensor) {
    return tensor.name.ends_with("lm_head.weight") || tensor.name.contains("logits_dense");
  });
  out.roles = roles_of(config, head);
  if (const auto family = models::family_of(config)) {
    out.family = (*family)->name;
    out.family_title = (*family)->title;
  } else {
    out.notes.push_back(family.error().message());
  }
}

void add_tensors(const huggingface::ShardSet& shards, Inspection& out) {
  for (const auto& shard : shards.shards()) {
    out.facts["file " + shard->name] = fmt::format("{} tensors, {} bytes", shard->header.tensors.size(), shard->stamp.size);
    for (const auto& [key, value] : shard->header.metadata) out.facts["metadata " + shard->name + " " + key] = value;
    for (const safetensors::TensorInfo& tensor : shard->header.tensors) {
      Tensor row;
      row.name = tensor.name;
      row.type = dtype_name(tensor.dtype);
      row.shape = tensor.shape;
      row.bytes = row.stored = tensor.byte_size();
      row.place = shard->name;
      out.tensors.push_back(std::move(row));
    }
  }
}

Result<Inspection> inspect_model(Storage& storage, const std::string& path) {
  huggingface::OpenOptions options;
  options.metadata = safetensors::MetadataPolicy::kTolerate;
  MAXPORT_ASSIGN_OR_RETURN(const auto model, huggingface::ModelDirectory::open(storage, path, options));
  Inspection out;
  out.path = model->folder();
  out.kind = "Hugging Face model";
  out.storage = fmt::format("safetensors, {} file{}", model->files().size(), model->files().size() == 1 ? "" : "s");
  out.config_source = join_path(model->folder(), "config.json");
  out.notes = model->warnings();
  add_tensors(model->shards(), out);
  add_family(model->roles(), out);
  return out;
}

Result<Inspection> inspect_file(Storage& storage, const std::string& path) {
  huggingface::ShardSet file(storage, 1);
  MAXPORT_RETURN_IF_ERROR(file.add(path.substr(path.rfind('/') + 1), path, safetensors::MetadataPolicy::kTolerate));
  Inspection out;
  out.path = path;
  out.kind = "safetensors file";
  out.storage = "safetensors, 1 file";
  out.notes = file.shards()[0]->header.notes;
  add_tensors(file, out);
  return out;
}

class CheckpointInspector {
 public:
  CheckpointInspector(Storage& storage, const orbax::Checkpoint& checkpoint) : storage_(storage), checkpoint_(checkpoint) {}

  Inspection run() {
    out_.path = checkpoint_.path().item_directory;
    out_.kind = "Orbax checkpoint";
    out_.notes = checkpoint_.notes();
    describe();
    for (const orbax::CheckpointLeaf& leaf : checkpoint_.leaves()) add_leaf(leaf);
    add_stored();
    find_layout();
    find_config();
    return std::move(out_);
  }

 private:
  void describe() {
    const orbax::CheckpointPath& path = checkpoint_.path();
    const orbax::StepMetadata& step = checkpoint_.step_metadata();
    bool zarr3 = checkpoint_.tree_metadata().use_zarr3;
    for (const orbax::CheckpointLeaf& leaf : checkpoint_.leaves())
      if (leaf.array) zarr3 = leaf.array->spec().version == zarr::Version::kV3;
    out_.storage = fmt::format("{}, Zarr v{}", checkpoint_.uses_ocdbt() ? "OCDBT" : "folders", zarr3 ? 3 : 2);
    if (path.step) out_.facts["step"] = std::to_string(*path.step);
    if (!path.item.empty()) out_.facts["item"] = path.item;
    std::string items;
    for (const std::string& item : path.items) items += (items.empty() ? "" : ", ") + item;
    if (path.items.size() > 1) out_.facts["items of the step"] = items;
    for (const auto& [item, handler] : step.item_handlers) out_.facts[item.empty() ? "handler" : "handler of " + item] = handler;
    if (step.custom_metadata.is_object() && !step.custom_metadata.empty()) out_.facts["custom metadata"] = step.custom_metadata.dump();
  }

  void add_leaf(const orbax::CheckpointLeaf& leaf) {
    Tensor row;
    row.name = leaf.name;
    row.value_type = leaf.value_type;
    row.type = leaf.value_type;
    if (leaf.problem) row.problem = leaf.problem->message();
    if (leaf.array) {
      const zarr::ArraySpec& spec = leaf.array->spec();
      row.type = dtype_name(leaf.dtype);
      row.shape = leaf.shape;
      row.bytes = static_cast<uint64_t>(element_count(leaf.shape)) * static_cast<uint64_t>(dtype_bytes(leaf.dtype));
      row.chunks = Chunks{spec.chunk_shape, static_cast<uint64_t>(zarr::chunk_count(spec)), 0, codecs_text(spec.codecs)};
      if (leaf.kind == orbax::LeafKind::kScalar)
        if (const auto value = checkpoint_.scalar(leaf)) row.value = std::visit([](auto number) { return fmt::format("{}", number); }, *value);
    } else if (leaf.kind == orbax::LeafKind::kString) {
      if (auto text = checkpoint_.text(leaf)) row.value = std::move(*text);
    }
    out_.tensors.push_back(std::move(row));
  }

  /// One pass over the keys of the store: what a chunk takes is the length of its value.
  void add_stored() {
    std::map<std::string, Tensor*, std::less<>> by_name;
    for (Tensor& tensor : out_.tensors) by_name[tensor.name] = &tensor;
    const auto status = checkpoint_.store().list("", [&](std::string_view key, const ValueLocation& where) -> Result<> {
      const std::string_view last = key.substr(key.rfind('/') + 1);
      if (last == "zarr.json" || last == ".zarray" || last == ".zattrs" || last == ".zgroup") return {};
      for (size_t slash = key.find('/'); slash != std::string_view::npos; slash = key.find('/', slash + 1)) {
        const auto found = by_name.find(key.substr(0, slash));
        if (found == by_name.end() || !found->second->chunks) continue;
        found->second->stored += where.length;
        ++found->second->chunks->stored;
        break;
      }
      return {};
    });
    if (!status) out_.notes.push_back(status.error().message());
  }

  void find_layout() {
    std::vector<maxtext::LeafPath> paths;
    for (const orbax::CheckpointLeaf& leaf : checkpoint_.leaves()) {
      paths.emplace_back();
      for (const orbax::KeyPart& part : leaf.path) paths.back().push_back(part.key);
    }
    const auto tree = maxtext::canonical_tree(paths);
    if (!tree) return out_.notes.push_back("it is no tree of MaxText's: " + tree.error().message());
    out_.layout = std::string(maxtext::tree_layout_name(tree->layout));
    if (tree->scan_layers) out_.layout += *tree->scan_layers ? ", scanned" : ", unscanned";
  }

  void find_config() {
    const std::string record = join_path(checkpoint_.path().step_directory, convert::kRecordFile);
    const auto kind = storage_.kind(record);
    if (checkpoint_.path().step_directory.empty() || !kind || !*kind)
      return out_.notes.push_back("nothing beside the checkpoint says which model it is of");
    const auto text = storage_.read_text(record, kMaxRecordBytes);
    if (!text) return out_.notes.push_back(text.error().message());
    const auto json = parse_json(*text, printable(record));
    if (!json) return out_.notes.push_back(json.error().message());
    if (!json->is_object() || !json->contains("source_config")) return out_.notes.push_back(printable(record) + " holds no source_config");
    out_.config_source = record;
    for (const char* key : {"maxport", "model_name", "save_dtype"})
      if (json->contains(key) && (*json)[key].is_string()) out_.facts[std::string("recorded ") + key] = (*json)[key].get<std::string>();
    const auto config = huggingface::ConfigRoles::create((*json)["source_config"], printable(record));
    if (!config) return out_.notes.push_back(config.error().message());
    add_family(*config, out_);
  }

  Storage& storage_;
  const orbax::Checkpoint& checkpoint_;
  Inspection out_;
};

Result<Inspection> inspect_checkpoint(Storage& storage, const std::string& path) {
  orbax::OpenOptions options;
  options.keep_damaged = true;
  MAXPORT_ASSIGN_OR_RETURN(const auto checkpoint, orbax::Checkpoint::open(storage, path, options));
  return CheckpointInspector(storage, *checkpoint).run();
}

Result<Inspection> inspect_kind(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(const convert::PathKind kind, convert::path_kind(storage, path));
  switch (kind) {
    case convert::PathKind::kModelFolder: return inspect_model(storage, path);
    case convert::PathKind::kWeightFile: return inspect_file(storage, path);
    case convert::PathKind::kCheckpoint: return inspect_checkpoint(storage, path);
  }
  return fail(ErrorKind::kInternal, "unknown kind of path");
}

}  // namespace

uint64_t Inspection::bytes() const {
  return std::accumulate(tensors.begin(), tensors.end(), uint64_t{0}, [](uint64_t sum, const Tensor& tensor) { return sum + tensor.bytes; });
}

uint64_t Inspection::stored() const {
  return std::accumulate(tensors.begin(), tensors.end(), uint64_t{0}, [](uint64_t sum, const Tensor& tensor) { return sum + tensor.stored; });
}

Result<Inspection> inspect(Storage& storage, const std::string& path) {
  MAXPORT_ASSIGN_OR_RETURN(Inspection out, inspect_kind(storage, path));
  std::ranges::sort(out.tensors, {}, &Tensor::name);
  return out;
}

}  // namespace maxport::inspect
