#include "convert/to_maxtext.h"

#include <algorithm>

#include "base/digest.h"
#include "convert/journal.h"
#include "convert/leaf_tensor.h"
#include "maxtext/sharding.h"
#include "plan/digest.h"
#include "storage/open_files.h"

namespace maxport::convert {
namespace {

std::string step_path(const ToMaxtextOptions& options) {
  return join_path(options.base_output_directory, std::to_string(options.step));
}

std::string temporary_path(const ToMaxtextOptions& options) {
  return step_path(options) + std::string(orbax::kTemporarySuffix);
}

std::string journal_path(const ToMaxtextOptions& options) {
  return temporary_path(options) + std::string(kJournalSuffix);
}

std::string_view compression_name(zarr::Compression compression) {
  switch (compression) {
    case zarr::Compression::kNone: return "none";
    case zarr::Compression::kBlosc: return "blosc";
    case zarr::Compression::kLz4: return "lz4";
    case zarr::Compression::kZstd: return "zstd";
  }
  return "unknown";
}

orbax::TreePath leaf_path(const plan::Leaf& leaf) {
  orbax::TreePath path{{"params"}, {leaf.collection}};
  std::string_view rest = leaf.path;
  while (!rest.empty()) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    path.push_back({std::string(rest.substr(0, dot))});
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return path;
}

}  // namespace

std::string leaf_digest(const engine::ChunkDigests& chunks) {
  ByteWriter bytes;
  for (uint64_t digest : chunks) bytes.write_le64(digest);
  return xxh128_hex(bytes.bytes());
}

Result<std::unique_ptr<ToMaxtext>> ToMaxtext::prepare(Storage& storage, const ModelSource& source,
                                                      ToMaxtextOptions options) {
  if (!source.account().good()) return std::unexpected(plan::to_error(source.account()));
  if (zarr::uses_blosc(options.compression) && !options.use_zarr3)
    return fail(ErrorKind::kInvalidArgument, "compression {} needs Zarr v3; with checkpoint_storage_use_zarr3=false use zstd or none",
                compression_name(options.compression));
  std::unique_ptr<ToMaxtext> out(new ToMaxtext(storage, source, std::move(options)));
  MAXPORT_RETURN_IF_ERROR(out->make_jobs());
  return out;
}

Result<zarr::ArraySpec> ToMaxtext::spec_of(const engine::LeafReader& reader, const engine::ChunkGrid& grid) const {
  return zarr::make_array_spec(options_.use_zarr3 ? zarr::Version::kV3 : zarr::Version::kV2, reader.dtype(),
                               reader.shape(), grid.chunk_shape, options_.compression);
}

Result<> ToMaxtext::make_jobs() {
  std::vector<engine::LeafJob> jobs;
  const plan::Plan& plan = source_.plan();
  plan_digest_ = plan::digest(plan);
  const int64_t chunk_bytes = engine::chunk_bytes_for(plan);
  for (const plan::Leaf& leaf : plan.leaves) {
    const std::string name = leaf.checkpoint_name();
    if (element_count(leaf.shape) == 0)
      return fail(ErrorKind::kUnsupported, "{} would have shape {}; Orbax stores no arrays of size zero", name,
                  shape_text(leaf.shape));
    MAXPORT_ASSIGN_OR_RETURN(auto reader, engine::LeafReader::create(plan, leaf, source_, options_.save_dtype));
    int64_t element_bytes = dtype_bytes(reader.dtype());
    for (const plan::Link& link : plan.links_of(leaf).first(std::min<size_t>(leaf.link_count, 1)))
      element_bytes = std::max(element_bytes, dtype_bytes(source_.dtype(link.tensor)));
    const int axis = maxtext::shard_axis(leaf.shape, options_.devices).value_or(-1);
    engine::ChunkGrid grid = engine::choose_grid(plan, leaf, {chunk_bytes, element_bytes, axis, options_.devices});
    MAXPORT_ASSIGN_OR_RETURN(zarr::ArraySpec spec, with_context(spec_of(reader, grid), name));
    jobs.push_back({name, std::move(reader), std::move(grid), std::move(spec)});
  }
  pipeline_ = std::make_unique<engine::Pipeline>(std::move(jobs), orbax::CheckpointWriter::kFirstFreeSegment,
                                                 options_.segment_bytes);
  return {};
}

engine::PipelineOptions ToMaxtext::pipeline_options() const {
  engine::PipelineOptions out;
  out.threads = options_.threads;
  out.max_memory = options_.max_memory;
  out.sync = options_.sync;
  out.cancelled = options_.cancelled;
  return out;
}

Result<engine::MemoryForecast> ToMaxtext::forecast() const { return pipeline_->forecast(pipeline_options()); }

// Everything that decides the bytes of the output; among it the chunks, which another build of the program may cut
// otherwise.
Json ToMaxtext::identity() const {
  std::string chunks;
  for (const engine::LeafJob& job : pipeline_->jobs()) chunks.append(job.name).append(shape_text(job.grid.chunk_shape));
  Json files = Json::array();
  for (const auto& shard : source_.directory().files())
    files.push_back({shard->name, shard->stamp.size, shard->stamp.modified_nanoseconds, shard->header_digest});
  return {{"maxport", MAXPORT_VERSION},
          {"plan", plan_digest_},
          {"config", xxh128_hex(as_bytes(source_.directory().config().dump()))},
          {"sources", std::move(files)},
          {"chunks", xxh128_hex(as_bytes(chunks))},
          {"save_dtype", dtype_name(options_.save_dtype)},
          {"compression", compression_name(options_.compression)},
          {"use_ocdbt", options_.use_ocdbt},
          {"use_zarr3", options_.use_zarr3},
          {"simulated_cpu_devices_count", options_.devices},
          {"record_sharding", options_.record_sharding},
          {"segment_bytes", options_.segment_bytes}};
}

/// Refuses to touch a finished step without being told. True when there is an unfinished one to go on with.
Result<bool> ToMaxtext::check_output() const {
  const std::string final = step_path(options_);
  MAXPORT_ASSIGN_OR_RETURN(const auto finished, storage_.kind(final));
  if (finished && !options_.overwrite) {
    // A run that was killed right after publishing leaves its journal.
    MAXPORT_RETURN_IF_ERROR(storage_.remove_all(journal_path(options_)));
    return fail(ErrorKind::kInvalidArgument,
                "{} is there already; choose another base_output_directory, or pass --overwrite to replace it",
                printable(final));
  }
  Result<bool> unfinished = check_unfinished();
  if (unfinished || !options_.overwrite) return unfinished;
  return false;
}

/// The journal is the first thing that a run writes and the last that it removes, so a temporary folder without one is
/// somebody else's.
Result<bool> ToMaxtext::check_unfinished() const {
  const std::string temporary = temporary_path(options_), journal = journal_path(options_);
  MAXPORT_ASSIGN_OR_RETURN(const auto folder, storage_.kind(temporary));
  MAXPORT_ASSIGN_OR_RETURN(const auto journal_kind, storage_.kind(journal));
  if (!folder) return false;
  if (!journal_kind)
    return fail(ErrorKind::kInvalidArgument, "{} is left over from another program; remove it, or pass --overwrite",
                printable(temporary));
  MAXPORT_RETURN_IF_ERROR(with_context(Journal::resume(storage_, journal, identity(), false), printable(temporary)));
  return true;
}

Result<> ToMaxtext::check_space() const {
  MAXPORT_ASSIGN_OR_RETURN(const auto free, storage_.free_bytes(options_.base_output_directory));
  // Compressed weights are never larger than raw ones by more than the codecs' headers.
  const uint64_t needed = raw_bytes() + raw_bytes() / 64 + (uint64_t{1} << 20);
  // What compression saves is only known afterwards, so a disk that could hold most of it is tried.
  const uint64_t least = options_.compression == zarr::Compression::kNone ? needed : needed / 10 * 6;
  if (free && *free < least)
    return fail(ErrorKind::kResourceLimit, "the checkpoint needs up to {} MB, but {} has {} MB free",
                needed / 1'000'000, printable(options_.base_output_directory), *free / 1'000'000);
  return {};
}

Result<std::unique_ptr<orbax::CheckpointWriter>> ToMaxtext::open_writer(bool resume) const {
  // Each leaf goes through the registries as a lazy tensor; what they say is recorded for it.
  MAXPORT_ASSIGN_OR_RETURN(const auto handler, orbax::resolve_tree_handler(nullptr, "items"));
  std::vector<orbax::Leaf> leaves;
  std::map<std::string, const zarr::ArraySpec*> specs;
  for (size_t i = 0; i < pipeline_->jobs().size(); ++i) {
    const engine::LeafJob& job = pipeline_->jobs()[i];
    leaves.push_back(orbax::tensor_leaf(leaf_path(source_.plan().leaves[i]), leaf_tensor(job.reader)));
    specs[job.name] = &job.spec;
  }
  leaves.push_back(orbax::int_leaf({{"step"}}, 0));
  leaves.push_back(orbax::empty_dict_leaf({{"opt_state"}}));
  MAXPORT_ASSIGN_OR_RETURN(const auto resolved, orbax::resolve_leaves(handler->leaves, leaves));
  MAXPORT_ASSIGN_OR_RETURN(auto laid_out, orbax::lay_out(resolved, [&](const orbax::ResolvedLeaf& leaf) -> Result<zarr::ArraySpec> {
    return *specs.at(orbax::parameter_name(leaf.path));
  }));
  orbax::CheckpointWriterOptions options;
  options.handler_type = handler->type;
  options.use_ocdbt = options_.use_ocdbt;
  options.version = options_.use_zarr3 ? zarr::Version::kV3 : zarr::Version::kV2;
  options.compression = zarr::uses_blosc(options_.compression) ? zarr::Compression::kZstd : options_.compression;
  if (options_.record_sharding) options.devices = options_.devices;
  options.custom_metadata = {{"scan_layers", source_.identity().layout.scan_layers}};
  options.init_timestamp_nsecs = options.commit_timestamp_nsecs = options_.timestamp_nsecs;
  options.seed = plan_digest_;
  options.sync = options_.sync;
  options.resume = resume;
  options.replace = options_.overwrite;
  return orbax::CheckpointWriter::create(storage_, options_.base_output_directory, options_.step, std::move(laid_out),
                                         std::move(options));
}

std::string ToMaxtext::record_text(const orbax::CheckpointWriter& writer) const {
  OrderedJson leaves = OrderedJson::object();
  // push_back, since looking a name up in an ordered object takes time proportional to its size.
  auto& members = leaves.get_ref<OrderedJson::object_t&>();
  for (size_t i = 0; i < pipeline_->jobs().size(); ++i) {
    const engine::LeafJob& job = pipeline_->jobs()[i];
    members.push_back({job.name,
                       {{"shape", job.reader.shape()},
                        {"dtype", dtype_name(job.reader.dtype())},
                        {"chunk_shape", job.grid.chunk_shape},
                        {"digest", leaf_digest(pipeline_->digests(i))}}});
  }
  OrderedJson scalars = OrderedJson::object(), described = OrderedJson::object();
  for (const orbax::WriteLeaf& leaf : writer.leaves())
    if (const auto* value = std::get_if<int64_t>(&leaf.content)) scalars[leaf.name()] = *value;
  for (const auto& [path, text] : writer.describing_files()) described[path] = xxh128_hex(as_bytes(text));
  const ModelIdentity& identity = source_.identity();
  OrderedJson record{{"maxport", MAXPORT_VERSION},
                     {"family", identity.family->name},
                     {"model_name", identity.entry ? Json(identity.entry->name) : Json()},
                     {"scan_layers", identity.layout.scan_layers},
                     {"param_scan_axis", identity.layout.param_scan_axis},
                     {"use_multimodal", identity.layout.use_multimodal},
                     {"save_dtype", dtype_name(options_.save_dtype)},
                     {"source_config", source_.directory().config()},
                     {"digest", "XXH3-128 of the little-endian XXH3-64 digests of the leaf's raw chunks, in row-major order"},
                     {"leaves", std::move(leaves)},
                     {"scalars", std::move(scalars)},
                     {"files", std::move(described)}};
  return record.dump(1) + "\n";
}

/// Beside the steps, not in one: MaxText looks for model files in a folder beside the configuration, and a step must not
/// hold folders that are no items.
Result<> ToMaxtext::write_side_files() const {
  for (const auto& [name, text] : options_.side_files) {
    const std::string path = join_path(options_.base_output_directory, name), working = path + ".tmp";
    if (const size_t slash = path.rfind('/'); slash != std::string::npos)
      MAXPORT_RETURN_IF_ERROR(storage_.make_directories(path.substr(0, slash)));
    MAXPORT_RETURN_IF_ERROR(storage_.write_text(working, text));
    MAXPORT_RETURN_IF_ERROR(storage_.remove_all(path));
    MAXPORT_RETURN_IF_ERROR(storage_.rename(working, path));
  }
  return {};
}

/// Renames the step into place; an old one that is to be replaced steps aside first and goes afterwards.
Result<> ToMaxtext::publish(orbax::CheckpointWriter& writer) {
  const std::string final = step_path(options_), old = final + ".replaced" + std::string(orbax::kTemporarySuffix);
  MAXPORT_ASSIGN_OR_RETURN(const auto finished, storage_.kind(final));
  if (!finished) return writer.commit();
  MAXPORT_RETURN_IF_ERROR(storage_.remove_all(old));
  MAXPORT_RETURN_IF_ERROR(storage_.rename(final, old));
  if (Result<> status = writer.commit(); !status) {
    if (Result<> back = storage_.rename(old, final); !back)
      return with_context(std::move(status), "the step that was to be replaced is now " + printable(old));
    return status;
  }
  return storage_.remove_all(old);
}

Result<ToMaxtextReport> ToMaxtext::run() {
  MAXPORT_RETURN_IF_ERROR(forecast());
  const size_t shards = std::min(source_.directory().files().size(), huggingface::OpenOptions().max_open_files);
  MAXPORT_RETURN_IF_ERROR(reserve_open_files(shards + engine::open_files(options_.threads)));
  MAXPORT_RETURN_IF_ERROR(source_.check_equal_tensors());
  MAXPORT_RETURN_IF_ERROR(storage_.make_directories(options_.base_output_directory));
  MAXPORT_ASSIGN_OR_RETURN(const auto lock, storage_.lock(options_.base_output_directory));
  MAXPORT_ASSIGN_OR_RETURN(const bool resume, check_output());
  MAXPORT_RETURN_IF_ERROR(check_space());
  const std::string path = journal_path(options_);
  MAXPORT_ASSIGN_OR_RETURN(auto journal, resume ? Journal::resume(storage_, path, identity(), options_.sync)
                                                : Journal::create(storage_, path, identity(), options_.sync));
  MAXPORT_ASSIGN_OR_RETURN(auto writer, open_writer(resume));
  ToMaxtextReport report;
  for (engine::SegmentResult& segment : journal->take_finished()) {
    MAXPORT_RETURN_IF_ERROR(pipeline_->adopt(std::move(segment), writer->values()));
    ++report.segments_resumed;
  }
  engine::PipelineOptions options = pipeline_options();
  options.finished = [&](const engine::SegmentResult& segment) { return journal->append(segment); };
  MAXPORT_RETURN_IF_ERROR(pipeline_->run(writer->values(), options));
  MAXPORT_RETURN_IF_ERROR(source_.directory().check_unchanged());
  MAXPORT_RETURN_IF_ERROR(writer->add_step_file(std::string(kRecordFile), record_text(*writer)));
  MAXPORT_RETURN_IF_ERROR(write_side_files());
  MAXPORT_RETURN_IF_ERROR(publish(*writer));
  MAXPORT_RETURN_IF_ERROR(storage_.remove_all(path));
  report.step_directory = step_path(options_);
  report.leaves = pipeline_->jobs().size();
  report.chunks = chunk_count();
  report.raw_bytes = raw_bytes();
  report.segments = pipeline_->segment_count();
  return report;
}

}  // namespace maxport::convert
