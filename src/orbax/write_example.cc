// Writes a checkpoint with leaves of every kind and type, for tests that let stock Orbax read it.
//
//   orbax_write_example DIRECTORY ocdbt|directory 2|3 none|blosc|zstd DEVICES
//
// DEVICES 0 records np.ndarray, else jax.Array sharded over so many. Prints what should be read back as JSON: parameter
// name to shape, dtype and SHA-256 of the bytes, or {"value": ...} or {"empty": ...}.
#include <cstdlib>
#include <iostream>
#include <random>

#include "base/digest.h"
#include "orbax/checkpoint_writer.h"
#include "zarr/chunk.h"
#include "zarr/grid.h"

namespace maxport::orbax {
namespace {

struct Arguments {
  std::string directory;
  CheckpointWriterOptions options;
};

Bytes example_bytes(DType dtype, int64_t elements, uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes out(static_cast<size_t>(elements * dtype_bytes(dtype)));
  // Types of less than a byte, and bool, use only the low bits of theirs.
  const uint64_t limit = dtype == DType::kBool ? 2 : dtype_info(dtype).bits < 8 ? 1u << (dtype_info(dtype).bits - 1) : 256;
  for (std::byte& byte : out) byte = static_cast<std::byte>(random() % limit);
  return out;
}

/// Cuts a dense array into chunks that do not divide it.
Result<> put_chunks(const WriteLeaf& leaf, const LazyTensor& tensor, zarr::Scratch& scratch, Segment& segment) {
  const zarr::ArraySpec& spec = *leaf.array();
  Result<> status;
  zarr::for_each_position(zarr::grid_shape(spec), [&](std::span<const int64_t> position) {
    status = [&]() -> Result<> {
      const Box box = zarr::chunk_box(spec, position);
      Bytes part(static_cast<size_t>(element_count(box.shape) * dtype_bytes(spec.dtype)));
      MAXPORT_RETURN_IF_ERROR(tensor.read(box, spec.dtype, part));
      Bytes chunk(static_cast<size_t>(zarr::chunk_bytes(spec)));
      zarr::copy_elements(spec.dtype, box.shape, {part.data(), row_major_strides(box.shape)},
                          {chunk.data(), row_major_strides(spec.chunk_shape)});
      MAXPORT_ASSIGN_OR_RETURN(const ByteSpan encoded, zarr::encode_chunk(spec, chunk, scratch));
      return segment.put(zarr::array_key(leaf.name(), zarr::chunk_key(spec, position)), encoded);
    }();
    return status.has_value();
  });
  return status;
}

Result<std::vector<Leaf>> example_leaves(Json& expected, bool with_text) {
  std::vector<Leaf> leaves;
  const auto add = [&](TreePath path, DType dtype, Shape shape) -> Result<> {
    const std::string name = parameter_name(path);
    Bytes bytes = example_bytes(dtype, element_count(shape), leaves.size());
    expected[name] = {{"shape", shape}, {"dtype", dtype_name(dtype)}, {"sha256", sha256_hex(bytes)}};
    MAXPORT_ASSIGN_OR_RETURN(auto tensor, memory_tensor(dtype, std::move(shape), std::move(bytes)));
    leaves.push_back(tensor_leaf(std::move(path), std::move(tensor)));
    return {};
  };
  for (const DTypeInfo& info : all_dtypes()) {
    const bool unknown_to_stock = info.dtype == DType::kUint4 || info.dtype == DType::kFloat6E2m3fn ||
                                  info.dtype == DType::kFloat6E3m2fn;
    if (!unknown_to_stock) MAXPORT_RETURN_IF_ERROR(add({{"types"}, {std::string(info.name)}}, info.dtype, {6, 16, 5}));
  }
  MAXPORT_RETURN_IF_ERROR(add({{"list"}, {"0", true}}, DType::kFloat32, {}));
  MAXPORT_RETURN_IF_ERROR(add({{"list"}, {"1", true}, {"it's \"x\""}}, DType::kBfloat16, {7}));
  MAXPORT_RETURN_IF_ERROR(add({{"dots.in name"}, {"gr\u00fc\u00df"}}, DType::kFloat16, {33, 2}));
  MAXPORT_RETURN_IF_ERROR(add({{"large"}}, DType::kFloat32, {512, 300}));
  leaves.push_back(int_leaf({{"step"}}, -3));
  expected["step"] = {{"value", -3}};
  leaves.push_back({{{"ratio"}}, std::string(kFloatLeaf), 0.625});
  expected["ratio"] = {{"value", 0.625}};
  if (with_text) {
    leaves.push_back({{{"text"}}, std::string(kTextLeaf), std::string("gr\u00fc\u00df \"you\"\n")});
    expected["text"] = {{"value", "gr\u00fc\u00df \"you\"\n"}};
  }
  for (const auto& [key, type] : {std::pair{"dict", kDictLeaf}, {"elements", kListLeaf}, {"nothing", kNoneLeaf}}) {
    leaves.push_back({{{"empty"}, {key}}, std::string(type), {}});
    expected[std::string("empty.") + key] = {{"empty", type}};
  }
  return leaves;
}

Result<> write_example(Arguments arguments) {
  CheckpointWriterOptions& options = arguments.options;
  Json expected = Json::object();
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<Leaf> leaves, example_leaves(expected, true));
  MAXPORT_ASSIGN_OR_RETURN(const auto handler, resolve_tree_handler(nullptr, options.item));
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<ResolvedLeaf> resolved, resolve_leaves(handler->leaves, leaves));
  const auto layout = [&](const ResolvedLeaf& leaf) -> Result<zarr::ArraySpec> {
    const auto& tensor = *std::get<std::shared_ptr<const LazyTensor>>(leaf.content);
    Shape chunk = tensor.shape();
    for (int64_t& extent : chunk) extent = std::min<int64_t>(extent, 4 + extent / 2);
    return zarr::make_array_spec(options.version, tensor.dtype(), tensor.shape(), chunk, options.compression);
  };
  MAXPORT_ASSIGN_OR_RETURN(std::vector<WriteLeaf> laid_out, lay_out(resolved, layout));
  MAXPORT_ASSIGN_OR_RETURN(auto writer, CheckpointWriter::create(local_storage(), arguments.directory, 0,
                                                                 std::move(laid_out), options));
  MAXPORT_ASSIGN_OR_RETURN(auto segment, writer->values().start_segment(CheckpointWriter::kFirstFreeSegment));
  zarr::Scratch scratch;
  for (size_t i = 0; i < resolved.size(); ++i)
    if (const auto* tensor = std::get_if<std::shared_ptr<const LazyTensor>>(&resolved[i].content))
      MAXPORT_RETURN_IF_ERROR(put_chunks(writer->leaves()[i], **tensor, scratch, *segment));
  MAXPORT_RETURN_IF_ERROR(segment->finish(options.sync));
  MAXPORT_RETURN_IF_ERROR(writer->add_step_file("example.json", expected.dump()));
  MAXPORT_RETURN_IF_ERROR(writer->commit());
  std::cout << expected.dump() << "\n";
  return {};
}

Arguments parse(char** arguments) {
  Arguments out{arguments[1], {}};
  const std::string compression = arguments[4];
  out.options.use_ocdbt = std::string(arguments[2]) == "ocdbt";
  out.options.version = std::string(arguments[3]) == "2" ? zarr::Version::kV2 : zarr::Version::kV3;
  out.options.compression = compression == "none"    ? zarr::Compression::kNone
                            : compression == "blosc" ? zarr::Compression::kBlosc
                                                     : zarr::Compression::kZstd;
  if (const int64_t devices = std::atoll(arguments[5])) out.options.devices = devices;
  out.options.custom_metadata = {{"scan_layers", true}};
  out.options.init_timestamp_nsecs = out.options.commit_timestamp_nsecs = 1796037827812187772;
  return out;
}

}  // namespace
}  // namespace maxport::orbax

int main(int count, char** arguments) {
  if (count != 6) {
    std::cerr << "usage: orbax_write_example DIRECTORY ocdbt|directory 2|3 none|blosc|zstd DEVICES\n";
    return 2;
  }
  if (auto status = maxport::orbax::write_example(maxport::orbax::parse(arguments)); !status) {
    std::cerr << status.error().message() << "\n";
    return 1;
  }
}
