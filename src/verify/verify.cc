#include "verify/verify.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <thread>

#include "base/digest.h"
#include "base/digest.h"
#include "convert/to_maxtext.h"
#include "engine/leaf_reader.h"

namespace maxport::verify {
namespace {

/// What maxport wrote down when it made the checkpoint.
struct Record {
  Json leaves = Json::object();
  Json scalars = Json::object();  ///< name to value
  Json files = Json::object();    ///< path below the step to XXH3-128
  std::optional<bool> scan_layers;
  std::optional<DType> save_dtype;
};

/// Of a step that Orbax v1 saved (formats.md 3.8).
constexpr std::string_view kV1Marker = "orbax.checkpoint";

class Verifier {
 public:
  Verifier(Storage& storage, const orbax::Checkpoint& checkpoint, const Options& options)
      : storage_(storage), checkpoint_(checkpoint), options_(options) {}

  Result<Report> run() {
    check_markers();
    check_tree_metadata();
    check_step();
    read_record();
    check_files();
    check_tree();
    check_scalars();
    check_sharding();
    MAXPORT_RETURN_IF_ERROR(check_keys());
    MAXPORT_RETURN_IF_ERROR(check_arrays());
    std::ranges::sort(report_.damages, {}, [](const Damage& damage) { return std::pair(damage.leaf, damage.text); });
    return std::move(report_);
  }

 private:
  void damage(std::string leaf, std::string text) {
    const std::lock_guard lock(mutex_);
    report_.damages.push_back({std::move(leaf), std::move(text)});
  }

  /// v1 marks the step alone, with a file of its own; v0 marks the items too.
  void check_markers() {
    const std::string& step = checkpoint_.path().step_directory;
    const auto v1 = step.empty() ? std::optional<EntryKind>() : storage_.kind(join_path(step, kV1Marker)).value_or(std::nullopt);
    for (const std::string& folder : {checkpoint_.path().item_directory, step}) {
      if (folder.empty() || (v1 && folder != step)) continue;
      const std::string marker = join_path(folder, orbax::kCommitFile);
      if (auto kind = storage_.kind(marker); !kind || !*kind)
        damage({}, fmt::format("{} is missing; on an object store the step would count as unfinished", printable(marker)));
    }
  }

  void check_step() {
    const std::string& folder = checkpoint_.path().step_directory;
    if (folder.empty()) return;
    const std::string path = join_path(folder, orbax::kStepMetadataFile);
    auto text = storage_.read_text(path);
    if (!text) return damage({}, text.error().message());
    auto metadata = orbax::parse_step_metadata(*text, printable(path));
    if (!metadata) return damage({}, metadata.error().message());
    static const std::set<std::string, std::less<>> kHandlers{
        std::string(orbax::kTreeHandlerType), "orbax.checkpoint.experimental.v1._src.handlers.pytree_handler.PyTreeHandler",
        "orbax.checkpoint._src.handlers.standard_checkpoint_handler.StandardCheckpointHandler"};
    const auto found = metadata->item_handlers.find(checkpoint_.path().item);
    if (found == metadata->item_handlers.end())
      damage({}, fmt::format("{} does not name the item \"{}\"", printable(path), checkpoint_.path().item));
    else if (!kHandlers.contains(found->second))
      damage({}, fmt::format("{}: no stock reader knows the handler \"{}\"", printable(path), printable(found->second)));
  }

  /// What stock Orbax asks of `_METADATA` and reading does without (formats.md 3.3).
  void check_tree_metadata() {
    const std::string path = join_path(checkpoint_.path().item_directory, orbax::kTreeMetadataFile);
    const auto text = storage_.read_text(path);
    if (!text) return damage({}, fmt::format("{}; stock Orbax does not restore without it", text.error().message()));
    const auto json = parse_json(*text, printable(path));
    if (!json) return damage({}, json.error().message());
    const auto tree = json->find("tree_metadata");
    if (tree == json->end()) return damage({}, fmt::format("{}: \"tree_metadata\" is missing", printable(path)));
    for (const auto& [leaf, entry] : tree->items())
      if (!entry.is_object() || !entry.value("value_metadata", Json::object()).contains("skip_deserialize"))
        damage({}, fmt::format("{}: {}: \"skip_deserialize\" is missing; stock Orbax does not restore without it",
                               printable(path), printable(leaf)));
  }

  void read_record() {
    const std::string path = join_path(checkpoint_.path().step_directory, convert::kRecordFile);
    auto kind = storage_.kind(path);
    if (!kind || !*kind) {
      report_.warnings.push_back("there is no maxport.json beside the items, so there are no digests to compare with");
      return;
    }
    auto text = storage_.read_text(path);
    if (!text) return damage({}, text.error().message());
    auto json = parse_json(*text, printable(path));
    if (!json) return damage({}, json.error().message());
    if (!json->is_object() || !json->contains("leaves") || !(*json)["leaves"].is_object())
      return damage({}, fmt::format("{}: it holds no \"leaves\"", printable(path)));
    record_.leaves = (*json)["leaves"];
    if (json->contains("files") && (*json)["files"].is_object()) record_.files = (*json)["files"];
    if (json->contains("scalars") && (*json)["scalars"].is_object()) record_.scalars = (*json)["scalars"];
    if (json->contains("scan_layers") && (*json)["scan_layers"].is_boolean())
      record_.scan_layers = (*json)["scan_layers"].get<bool>();
    if (json->contains("save_dtype") && (*json)["save_dtype"].is_string())
      record_.save_dtype = dtype_from_name((*json)["save_dtype"].get<std::string>());
    report_.recorded = true;
    const Json& custom = checkpoint_.step_metadata().custom_metadata;
    const Json recorded = record_.scan_layers ? Json(*record_.scan_layers) : Json();
    const Json found = custom.is_object() && custom.contains("scan_layers") ? custom["scan_layers"] : Json();
    if (recorded != found)
      damage({}, fmt::format("_CHECKPOINT_METADATA says scan_layers {}, the record says {}", found.dump(), recorded.dump()));
  }

  /// What describes the tree must be as it was written, to the byte.
  void check_files() {
    for (const auto& [name, digest] : record_.files.items()) {
      const std::string path = join_path(checkpoint_.path().step_directory, name);
      const auto text = storage_.read_text(path);
      if (!text)
        damage({}, text.error().message());
      else if (digest != Json(xxh128_hex(as_bytes(*text))))
        damage({}, fmt::format("{} is not as it was written at conversion", printable(path)));
    }
  }

  void check_scalars() {
    for (const auto& [name, value] : record_.scalars.items()) {
      const orbax::CheckpointLeaf* leaf = checkpoint_.find(name);
      if (leaf == nullptr || leaf->kind != orbax::LeafKind::kScalar || !leaf->array) {
        damage(name, "it was recorded as a number at conversion and is none");
        continue;
      }
      const auto found = checkpoint_.scalar(*leaf);
      if (!found)
        damage(name, found.error().message());
      else if (leaf->dtype != DType::kInt64 || value != Json(std::get<int64_t>(*found)))
        damage(name, fmt::format("it is {} {}, recorded was {}", dtype_name(leaf->dtype),
                                 std::visit([](auto number) { return fmt::format("{}", number); }, *found), value.dump()));
    }
  }

  /// Of checkpoints that record how arrays lay on devices: stock reads these files when it restores such arrays.
  void check_sharding() {
    const auto text_of = [&](std::string_view name) -> std::optional<std::string> {
      const std::string path = join_path(checkpoint_.path().item_directory, name);
      if (auto kind = storage_.kind(path); !kind || !*kind) return std::nullopt;
      auto text = storage_.read_text(path);
      if (!text) damage({}, text.error().message());
      return text ? std::optional(std::move(*text)) : std::nullopt;
    };
    if (const auto text = text_of(orbax::kArrayMetadataFile))
      if (auto arrays = orbax::parse_array_metadata(*text, orbax::kArrayMetadataFile); !arrays) damage({}, arrays.error().message());
    const auto text = text_of(orbax::kShardingFile);
    if (!text) return;
    const auto shardings = orbax::parse_sharding(*text, orbax::kShardingFile);
    if (!shardings) return damage({}, shardings.error().message());
    for (const orbax::CheckpointLeaf& leaf : checkpoint_.leaves())
      if (leaf.value_type == orbax::kJaxType && !shardings->contains(leaf.name))
        damage(leaf.name, "it is recorded as jax.Array, but _sharding has nothing for it");
  }

  void check_tree() {
    std::set<std::string> stored;
    for (const orbax::CheckpointLeaf& leaf : checkpoint_.leaves()) {
      if (!orbax::is_stock_type(leaf.value_type))
        damage(leaf.name, fmt::format("its type string \"{}\" is known to no stock reader", printable(leaf.value_type)));
      if (leaf.problem) damage(leaf.name, leaf.problem->message());
      if (leaf.kind != orbax::LeafKind::kArray) continue;
      ++report_.leaves;
      stored.insert(leaf.name);
      if (!report_.recorded) continue;
      const auto recorded = record_.leaves.find(leaf.name);
      if (recorded == record_.leaves.end()) {
        damage(leaf.name, "it is not among the leaves that were recorded at conversion");
      } else if (leaf.array && ((*recorded).value("shape", Json()) != Json(leaf.shape) ||
                                (*recorded).value("dtype", Json()) != Json(dtype_name(leaf.dtype)))) {
        damage(leaf.name, fmt::format("it is {}{}, recorded was {}{}", dtype_name(leaf.dtype), shape_text(leaf.shape),
                                      (*recorded).value("dtype", "?"), (*recorded).value("shape", Json()).dump()));
      }
    }
    for (const auto& [name, leaf] : record_.leaves.items())
      if (!stored.contains(name)) damage(name, "it was recorded at conversion and is missing");
  }

  /// Every key of the store must be the metadata or a chunk of a leaf.
  Result<> check_keys() {
    std::map<std::string, const orbax::CheckpointLeaf*, std::less<>> arrays;
    for (const orbax::CheckpointLeaf& leaf : checkpoint_.leaves())
      if (leaf.array || leaf.problem) arrays[leaf.name] = &leaf;
    const auto known = [&](std::string_view key) {
      for (size_t slash = key.find('/'); slash != std::string_view::npos; slash = key.find('/', slash + 1))
        if (arrays.contains(key.substr(0, slash))) return true;
      return false;
    };
    std::vector<std::string> strange;
    auto listed = checkpoint_.store().list("", [&](std::string_view key, const ValueLocation&) -> Result<> {
      // In folders, Orbax's own files lie beside the arrays.
      if (!known(key) && (checkpoint_.uses_ocdbt() || key.find('/') != std::string_view::npos) &&
          !key.starts_with("array_metadatas/"))
        strange.emplace_back(key);
      return {};
    });
    if (!listed) damage({}, listed.error().message());
    for (size_t i = 0; i < std::min<size_t>(strange.size(), 20); ++i)
      damage({}, fmt::format("the store holds {}, which belongs to no leaf", printable(strange[i])));
    return {};
  }

  struct Work {
    const orbax::CheckpointLeaf* leaf;
    Shape counts;
    uint64_t first_chunk;
    std::vector<uint64_t> digests;
    std::optional<engine::LeafReader> derived;
  };

  Result<> check_arrays() {
    uint64_t next_chunk = 0;
    for (const orbax::CheckpointLeaf& leaf : checkpoint_.leaves()) {
      if (leaf.kind != orbax::LeafKind::kArray && leaf.kind != orbax::LeafKind::kScalar) continue;
      if (!leaf.array) continue;
      const zarr::ArraySpec& spec = leaf.array->spec();
      Work work{&leaf, zarr::grid_shape(spec), next_chunk, {}, {}};
      const auto count = static_cast<uint64_t>(zarr::chunk_count(spec));
      work.digests.assign(count, 0);
      next_chunk += count;
      if (leaf.kind == orbax::LeafKind::kArray) MAXPORT_RETURN_IF_ERROR(derive(work));
      work_.push_back(std::move(work));
    }
    if (options_.source != nullptr) check_all_derived();
    report_.chunks = next_chunk;
    std::atomic<uint64_t> next{0};
    const auto loop = [&] {
      zarr::Scratch scratch;
      Bytes chunk, want;
      for (uint64_t i; (i = next.fetch_add(1)) < next_chunk;) {
        if (options_.cancelled && options_.cancelled()) return;
        const auto after = std::ranges::upper_bound(work_, i, {}, &Work::first_chunk);
        check_chunk(*std::prev(after), i, chunk, want, scratch);
      }
    };
    {
      std::vector<std::jthread> others;
      for (int t = 1; t < options_.threads; ++t) others.emplace_back(loop);
      loop();
    }
    if (options_.cancelled && options_.cancelled()) return fail(ErrorKind::kInterrupted, "stopped");
    compare_digests();
    return {};
  }

  Result<> derive(Work& work) {
    if (options_.source == nullptr) return {};
    const plan::Plan& plan = options_.source->plan();
    const auto leaf = std::ranges::find(plan.leaves, work.leaf->name, &plan::Leaf::checkpoint_name);
    if (leaf == plan.leaves.end()) {
      damage(work.leaf->name, "the source has nothing for it");
      return {};
    }
    const DType save = options_.save_dtype.value_or(record_.save_dtype.value_or(work.leaf->dtype));
    MAXPORT_ASSIGN_OR_RETURN(work.derived, engine::LeafReader::create(plan, *leaf, *options_.source, save));
    if (work.derived->shape() != work.leaf->shape || work.derived->dtype() != work.leaf->dtype) {
      damage(work.leaf->name, fmt::format("it is {}{}, the source means {}{}", dtype_name(work.leaf->dtype), shape_text(work.leaf->shape),
                                          dtype_name(work.derived->dtype()), shape_text(work.derived->shape())));
      work.derived.reset();
    }
    return {};
  }

  void check_all_derived() {
    report_.sourced = true;
    for (const plan::Leaf& leaf : options_.source->plan().leaves)
      if (checkpoint_.find(leaf.checkpoint_name()) == nullptr)
        damage(leaf.checkpoint_name(), "the source has it, the checkpoint has not");
  }

  void check_chunk(Work& work, uint64_t number, Bytes& chunk, Bytes& want, zarr::Scratch& scratch) {
    const zarr::ArraySpec& spec = work.leaf->array->spec();
    uint64_t rest = number - work.first_chunk;
    std::vector<int64_t> position(work.counts.size());
    for (size_t axis = position.size(); axis-- > 0;) {
      position[axis] = static_cast<int64_t>(rest % static_cast<uint64_t>(work.counts[axis]));
      rest /= static_cast<uint64_t>(work.counts[axis]);
    }
    chunk.resize(static_cast<size_t>(zarr::chunk_bytes(spec)));
    if (auto read = work.leaf->array->read_chunk(position, chunk, scratch); !read)
      return damage(work.leaf->name, read.error().message());
    work.digests[number - work.first_chunk] = xxh64(chunk);
    if (options_.bytes_done != nullptr) *options_.bytes_done += chunk.size();
    if (work.derived) compare_with_source(work, position, chunk, want);
  }

  void compare_with_source(const Work& work, std::span<const int64_t> position, const Bytes& chunk, Bytes& want) {
    const zarr::ArraySpec& spec = work.leaf->array->spec();
    const Box box = zarr::chunk_box(spec, position);
    const auto element = static_cast<size_t>(dtype_bytes(spec.dtype));
    want.resize(static_cast<size_t>(element_count(box.shape)) * element);
    if (auto read = work.derived->read(box, want); !read) return damage(work.leaf->name, read.error().message());
    // Rows of the box within the full chunk.
    const std::vector<int64_t> strides = row_major_strides(spec.chunk_shape);
    const auto row = static_cast<size_t>(box.shape.empty() ? 1 : box.shape.back()) * element;
    std::vector<int64_t> at(box.shape.size(), 0);
    for (size_t done = 0; done < want.size(); done += row) {
      int64_t offset = 0;
      for (size_t axis = 0; axis < at.size(); ++axis) offset += at[axis] * strides[axis];
      if (!std::equal(want.begin() + static_cast<std::ptrdiff_t>(done), want.begin() + static_cast<std::ptrdiff_t>(done + row),
                      chunk.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(offset) * element))) {
        for (size_t axis = 0; axis < at.size(); ++axis) at[axis] += box.origin[axis];
        return damage(work.leaf->name, fmt::format("other values than the source means, first in the row at {} of chunk {}",
                                                   shape_text(at), zarr::chunk_key(spec, position)));
      }
      for (size_t axis = at.empty() ? 0 : at.size() - 1; axis-- > 0;) {
        if (++at[axis] < box.shape[axis]) break;
        at[axis] = 0;
      }
    }
  }

  void compare_digests() {
    for (const Work& work : work_) {
      report_.bytes += static_cast<uint64_t>(zarr::chunk_bytes(work.leaf->array->spec())) * work.digests.size();
      if (work.leaf->kind != orbax::LeafKind::kArray) continue;
      const auto recorded = record_.leaves.find(work.leaf->name);
      if (recorded == record_.leaves.end()) continue;
      if ((*recorded).value("chunk_shape", Json()) != Json(work.leaf->array->spec().chunk_shape))
        damage(work.leaf->name, "it is cut into other chunks than were recorded");
      else if ((*recorded).value("digest", "") != convert::leaf_digest(work.digests))
        damage(work.leaf->name, "its digest is not the one that was recorded at conversion");
    }
  }

  Storage& storage_;
  const orbax::Checkpoint& checkpoint_;
  const Options& options_;
  Record record_;
  Report report_;
  std::mutex mutex_;
  std::vector<Work> work_;
};

}  // namespace

Result<Report> verify_checkpoint(Storage& storage, const std::string& path, const Options& options) {
  orbax::OpenOptions open;
  open.keep_damaged = true;
  open.fill_missing = false;
  MAXPORT_ASSIGN_OR_RETURN(const auto checkpoint, orbax::Checkpoint::open(storage, path, open));
  return Verifier(storage, *checkpoint, options).run();
}

}  // namespace maxport::verify
