#include "orbax/checkpoint_writer.h"

#include <algorithm>

#include "base/digest.h"
#include "ocdbt/database.h"
#include "orbax/write_checks.h"
#include "zarr/chunk.h"
#include "zarr/metadata.h"

namespace maxport::orbax {
namespace {

/// The first 16 bytes that a text's digest makes.
std::array<std::byte, 16> uuid_of(std::string_view text) {
  const std::string digits = xxh128_hex(as_bytes(text));
  std::array<std::byte, 16> uuid;
  for (size_t i = 0; i < uuid.size(); ++i)
    uuid[i] = static_cast<std::byte>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  return uuid;
}

/// The metadata of arrays; layers of a model have the same.
class MetadataTexts {
 public:
  const std::string& of(const zarr::ArraySpec& spec) {
    Entry& entry = entries_[{spec.shape, spec.chunk_shape}];
    if (!entry.spec || *entry.spec != spec) entry = {spec, zarr::metadata_text(spec)};
    return entry.text;
  }

 private:
  struct Entry {
    std::optional<zarr::ArraySpec> spec;
    std::string text;
  };
  std::map<std::pair<Shape, Shape>, Entry> entries_;
};

/// Puts one array's metadata and, for a scalar, its only chunk.
Result<> put_array(const std::string& name, const zarr::ArraySpec& spec, const std::string& metadata,
                   std::optional<ByteSpan> scalar, zarr::Scratch& scratch, Segment& segment) {
  MAXPORT_RETURN_IF_ERROR(
      segment.put(zarr::array_key(name, zarr::metadata_key(spec.version)), as_bytes(metadata)));
  if (!scalar) return {};
  MAXPORT_ASSIGN_OR_RETURN(const ByteSpan chunk, zarr::encode_chunk(spec, *scalar, scratch));
  return segment.put(zarr::array_key(name, zarr::chunk_key(spec, {})), chunk);
}

}  // namespace

Result<std::vector<WriteLeaf>> lay_out(std::span<const ResolvedLeaf> leaves,
                                       const std::function<Result<zarr::ArraySpec>(const ResolvedLeaf&)>& layout) {
  std::vector<WriteLeaf> out;
  for (const ResolvedLeaf& leaf : leaves) {
    WriteLeaf placed{leaf.path, leaf.value_type, EmptyLeaf{}};
    if (std::holds_alternative<std::shared_ptr<const LazyTensor>>(leaf.content)) {
      auto spec = layout(leaf);
      if (!spec)
        return std::unexpected(std::move(spec).error().with_context(fmt::format("leaf \"{}\"", printable(placed.name()))));
      placed.content = *std::move(spec);
    } else if (const auto* integer = std::get_if<int64_t>(&leaf.content)) {
      placed.content = *integer;
    } else if (const auto* number = std::get_if<double>(&leaf.content)) {
      placed.content = *number;
    } else if (const auto* text = std::get_if<std::string>(&leaf.content)) {
      placed.content = *text;
    }
    out.push_back(std::move(placed));
  }
  return out;
}

CheckpointWriter::CheckpointWriter(Storage& storage, std::string base, int64_t step, std::vector<WriteLeaf> leaves,
                                   CheckpointWriterOptions options)
    : storage_(storage),
      base_(std::move(base)),
      step_(step),
      leaves_(std::move(leaves)),
      options_(std::move(options)),
      temporary_(join_path(base_, std::to_string(step) + std::string(kTemporarySuffix))),
      final_(join_path(base_, std::to_string(step))) {}

Result<std::unique_ptr<CheckpointWriter>> CheckpointWriter::create(Storage& storage, std::string base_directory,
                                                                   int64_t step, std::vector<WriteLeaf> leaves,
                                                                   CheckpointWriterOptions options) {
  if (options.devices)
    for (WriteLeaf& leaf : leaves)
      if (leaf.array()) leaf.value_type = kJaxType;
  std::unique_ptr<CheckpointWriter> writer(
      new CheckpointWriter(storage, std::move(base_directory), step, std::move(leaves), std::move(options)));
  const std::string context = "writing the checkpoint " + printable(writer->final_);
  MAXPORT_RETURN_IF_ERROR(with_context(check_options(step, writer->options_), context));
  MAXPORT_RETURN_IF_ERROR(with_context(check_leaves(writer->leaves_, writer->options_), context));
  MAXPORT_RETURN_IF_ERROR(with_context(writer->prepare_directories(), context));
  // Spelled out once: of thousands of leaves it takes longer than everything else before the first chunk.
  std::string tree = tree_metadata_text(writer->tree_metadata());
  MAXPORT_RETURN_IF_ERROR(with_context(writer->open_store(tree), context));
  writer->describing_files_ = writer->make_describing_files(std::move(tree));
  MAXPORT_RETURN_IF_ERROR(with_context(writer->write_first_segment(), context));
  return writer;
}

Result<> CheckpointWriter::prepare_directories() {
  MAXPORT_ASSIGN_OR_RETURN(const auto existing, storage_.kind(final_));
  if (existing && !options_.replace)
    return fail(ErrorKind::kInvalidArgument,
                "{} exists already and is not overwritten; remove it or choose another directory", printable(final_));
  for (std::string directory = base_;; directory = parent_path(directory)) {
    MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage_.kind(directory));
    made_directories_.push_back(directory);
    if (kind || parent_path(directory) == directory) break;
  }
  MAXPORT_RETURN_IF_ERROR(storage_.make_directories(temporary_));
  MAXPORT_ASSIGN_OR_RETURN(lock_, storage_.lock(temporary_));
  if (!options_.resume) {
    // Emptied rather than removed, so that the lock stays on the directory that is used.
    MAXPORT_ASSIGN_OR_RETURN(const auto entries, storage_.list(temporary_));
    for (const DirectoryEntry& entry : entries)
      MAXPORT_RETURN_IF_ERROR(storage_.remove_all(join_path(temporary_, entry.name)));
  }
  return storage_.make_directories(item_directory());
}

Result<> CheckpointWriter::open_store(std::string_view tree) {
  if (!options_.use_ocdbt) {
    values_ = create_directory_store(storage_, item_directory());
    return {};
  }
  ocdbt::WriterOptions database;
  database.uuid = uuid_of(fmt::format("{}{}", options_.seed, tree));
  database.seed = options_.seed + hex(database.uuid);
  database.commit_time_nanoseconds = static_cast<uint64_t>(std::max<int64_t>(0, options_.commit_timestamp_nsecs));
  database.data_folder = options_.data_folder;
  values_ = ocdbt::create_database(storage_, item_directory(), std::move(database));
  return {};
}

Result<> CheckpointWriter::write_first_segment() {
  MAXPORT_ASSIGN_OR_RETURN(const std::unique_ptr<Segment> segment, values_->start_segment(0));
  zarr::Scratch scratch;
  MetadataTexts texts;
  for (const WriteLeaf& leaf : leaves_) {
    if (const zarr::ArraySpec* spec = leaf.array()) {
      MAXPORT_RETURN_IF_ERROR(put_array(leaf.name(), *spec, texts.of(*spec), {}, scratch, *segment));
      continue;
    }
    if (leaf.value_type != kScalarType) continue;
    const bool integer = std::holds_alternative<int64_t>(leaf.content);
    std::byte bytes[8];
    store_le(integer ? static_cast<uint64_t>(std::get<int64_t>(leaf.content))
                     : std::bit_cast<uint64_t>(std::get<double>(leaf.content)),
             bytes);
    MAXPORT_ASSIGN_OR_RETURN(const zarr::ArraySpec spec,
                             zarr::make_array_spec(options_.version, integer ? DType::kInt64 : DType::kFloat64, {}, {},
                                                   options_.compression));
    MAXPORT_RETURN_IF_ERROR(put_array(leaf.name(), spec, texts.of(spec), ByteSpan(bytes), scratch, *segment));
  }
  MAXPORT_RETURN_IF_ERROR(segment->finish(options_.sync));
  return {};
}

Result<> CheckpointWriter::add_item_file(std::string name, std::string text) {
  MAXPORT_RETURN_IF_ERROR(check_file_name(name));
  item_files_.emplace_back(std::move(name), std::move(text));
  return {};
}

Result<> CheckpointWriter::add_step_file(std::string name, std::string text) {
  MAXPORT_RETURN_IF_ERROR(check_file_name(name));
  step_files_.emplace_back(std::move(name), std::move(text));
  return {};
}

TreeMetadata CheckpointWriter::tree_metadata() const {
  TreeMetadata tree{.leaves = {},
                    .use_ocdbt = options_.use_ocdbt,
                    .use_zarr3 = options_.version == zarr::Version::kV3,
                    .store_equal_to_fill_value = true,
                    .custom_metadata = nullptr};
  for (const WriteLeaf& leaf : leaves_) {
    LeafMetadata metadata{.path = leaf.path, .value_type = leaf.value_type};
    metadata.skip_deserialize = is_empty_type(leaf.value_type);
    if (leaf.value_type == kJaxType) metadata.write_shape = device_write_shape(leaf.array()->shape, *options_.devices);
    tree.leaves.push_back(std::move(metadata));
  }
  return tree;
}

std::vector<std::pair<std::string, std::string>> CheckpointWriter::make_describing_files(std::string tree) const {
  std::map<std::string, DeviceSharding> shardings;
  std::vector<ArrayMetadata> arrays;
  std::map<std::string, std::string> strings;
  for (const WriteLeaf& leaf : leaves_) {
    if (const auto* text = std::get_if<std::string>(&leaf.content)) strings[leaf.name()] = *text;
    if (leaf.value_type != kJaxType) continue;
    const zarr::ArraySpec& spec = *leaf.array();
    shardings[leaf.name()] = device_sharding(spec.shape, *options_.devices);
    arrays.push_back({leaf.name(), device_write_shape(spec.shape, *options_.devices), spec.chunk_shape, nullptr});
  }
  const StepMetadata metadata{.item_handlers = {{options_.item, options_.handler_type}},
                              .init_timestamp_nsecs = options_.init_timestamp_nsecs,
                              .commit_timestamp_nsecs = options_.commit_timestamp_nsecs,
                              .custom_metadata = options_.custom_metadata};
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](std::string_view name, std::string text) { out.emplace_back(join_path(options_.item, name), std::move(text)); };
  add(kTreeMetadataFile, std::move(tree));
  if (!arrays.empty()) {
    add(kShardingFile, sharding_text(shardings));
    add(kArrayMetadataFile, array_metadata_text(arrays));
  }
  if (!strings.empty()) add(kStringsFile, strings_text(strings));
  out.emplace_back(kStepMetadataFile, step_metadata_text(metadata));
  return out;
}

Result<> CheckpointWriter::write_item_files() {
  const std::string item = item_directory();
  for (const auto& [path, text] : describing_files_) {
    if (path == kStepMetadataFile) continue;
    MAXPORT_RETURN_IF_ERROR(storage_.make_directories(parent_path(join_path(temporary_, path))));
    MAXPORT_RETURN_IF_ERROR(storage_.write_text(join_path(temporary_, path), text));
  }
  for (const auto& [name, text] : item_files_)
    MAXPORT_RETURN_IF_ERROR(storage_.write_text(join_path(item, name), text));
  return storage_.write_text(join_path(item, kCommitFile),
                             fmt::format("Checkpoint commit was successful to {}/{}", step_, options_.item));
}

Result<> CheckpointWriter::write_step_files() {
  for (const auto& [path, text] : describing_files_)
    if (path == kStepMetadataFile) MAXPORT_RETURN_IF_ERROR(storage_.write_text(join_path(temporary_, path), text));
  for (const auto& [name, text] : step_files_)
    MAXPORT_RETURN_IF_ERROR(storage_.write_text(join_path(temporary_, name), text));
  return storage_.write_text(join_path(temporary_, kCommitFile),
                             fmt::format("Checkpoint commit was successful to {}", step_));
}

/// The item's and the step's own entries are durable already, since write_text makes them so.
Result<> CheckpointWriter::sync_directories() {
  if (!options_.sync) return {};
  for (const std::string& directory : made_directories_) MAXPORT_RETURN_IF_ERROR(storage_.sync_directory(directory));
  return {};
}

Result<> CheckpointWriter::commit() {
  const std::string context = "committing the checkpoint " + printable(final_);
  MAXPORT_RETURN_IF_ERROR(with_context(values_->finish(options_.sync), context));
  MAXPORT_RETURN_IF_ERROR(with_context(write_item_files(), context));
  MAXPORT_RETURN_IF_ERROR(with_context(write_step_files(), context));
  MAXPORT_RETURN_IF_ERROR(with_context(sync_directories(), context));
  MAXPORT_RETURN_IF_ERROR(with_context(storage_.rename(temporary_, final_), context));
  if (!options_.sync) return {};
  return with_context(storage_.sync_directory(base_), context);
}

Result<> CheckpointWriter::discard() {
  values_.reset();
  MAXPORT_RETURN_IF_ERROR(storage_.remove_all(temporary_));
  lock_.reset();
  return {};
}

}  // namespace maxport::orbax
