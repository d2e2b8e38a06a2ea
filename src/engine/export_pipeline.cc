#include "engine/export_pipeline.h"

#include <algorithm>
#include <numeric>

#include "base/buffer.h"

namespace maxport::engine {
namespace {

/// Stored bytes that a unit of work gathers, unless a single chunk is larger: the bands in which this program writes a
/// leaf (grid.h), so that what is contiguous in the tensor comes together.
constexpr int64_t kUnitBytes = kMaximumBandBytes;
/// Bytes of a tensor that are put together before they are written: still in the second-level cache then.
constexpr int64_t kPieceBytes = int64_t{512} << 10;
/// Runs that are shorter are not worth a write each; arrays that would give such are cut anew, if they are large.
constexpr int64_t kShortRunBytes = int64_t{4} << 10;
/// Runs of this size need no longer ones.
constexpr int64_t kLongRunBytes = int64_t{1} << 20;
constexpr int64_t kSmallArrayBytes = int64_t{8} << 20;
/// Stored bytes of a segment, as in pipeline.cc.
constexpr uint64_t kMinimumSegmentBytes = uint64_t{8} << 20;
constexpr uint64_t kMaximumSegmentBytes = uint64_t{128} << 20;
constexpr uint64_t kSegmentsWanted = 64;

std::string tiles_path(const ScratchFolder& scratch, uint32_t leaf) {
  return join_path(scratch.path, fmt::format("tiles-{}", leaf));
}

/// Gap between neighbouring elements of a leaf within its tensor: 1, or 2 and more where leaves alternate.
int64_t innermost_stride(const plan::Plan& plan, const plan::Leaf& leaf) {
  int64_t least = INT64_MAX;
  if (leaf.link_count == 0) return 1;
  const plan::Walk& walk = plan.walks[plan.links_of(leaf)[0].walk];
  for (size_t i = 0; i < walk.extents.size(); ++i)
    if (walk.extents[i] > 1) least = std::min(least, walk.huggingface_strides[i]);
  return least == INT64_MAX ? 1 : least;
}

}  // namespace

struct ExportPipeline::Worker {
  std::vector<Buffer> boxes;  // one a leaf of the group
  Buffer piece;
  zarr::Scratch scratch;
};

ExportPipeline::ExportPipeline(const plan::Plan& plan, std::vector<const zarr::ArrayReader*> arrays,
                               std::vector<DType> dtypes)
    : plan_(plan), chunk_bytes_(chunk_bytes_for(plan)), arrays_(std::move(arrays)), dtypes_(std::move(dtypes)) {
  make_groups();
  first_unit_.push_back(0);
  for (const Group& group : groups_) {
    first_unit_.push_back(first_unit_.back() + static_cast<uint64_t>(element_count(group.counts)));
    for (uint32_t leaf : group.leaves)
      progress_.bytes_total += static_cast<uint64_t>(element_count(plan_.leaves[leaf].shape) *
                                                     dtype_bytes(arrays_[leaf]->spec().dtype));
  }
  cut_segments();
}

size_t ExportPipeline::group_of(uint64_t unit) const {
  return static_cast<size_t>(std::ranges::upper_bound(first_unit_, unit) - first_unit_.begin()) - 1;
}

uint64_t ExportPipeline::raw_bytes(uint64_t unit) const {
  const Group& group = groups_[group_of(unit)];
  return static_cast<uint64_t>(element_count(group.box) * dtype_bytes(arrays_[group.leaves[0]]->spec().dtype)) *
         group.leaves.size();
}

void ExportPipeline::cut_segments() {
  const uint64_t wanted =
      std::clamp(progress_.bytes_total / kSegmentsWanted, kMinimumSegmentBytes, kMaximumSegmentBytes);
  uint64_t bytes = wanted;
  for (uint64_t unit = 0; unit < first_unit_.back(); ++unit) {
    if (bytes >= wanted) {
      segments_.push_back({unit, 0});
      bytes = 0;
    }
    ++segments_.back().unit_count;
    bytes += raw_bytes(unit);
  }
}

Result<> ExportPipeline::adopt(uint64_t segment) {
  if (segment >= segments_.size() || segments_[segment].adopted)
    return fail(ErrorKind::kCorruptData, "the journal names segment {}, which this conversion does not have", segment);
  segments_[segment].adopted = true;
  for (uint64_t i = 0; i < segments_[segment].unit_count; ++i) {
    const uint64_t unit = segments_[segment].first_unit + i;
    if (const Group& group = groups_[group_of(unit)]; group.units_left) --*group.units_left;
    progress_.bytes_done += raw_bytes(unit);
  }
  return {};
}

/// The other leaves whose elements alternate with this one's in the same tensors, with this one, by their offset; only
/// this one when they do not fill the gaps or are stored otherwise.
std::vector<uint32_t> ExportPipeline::companions(uint32_t leaf) const {
  const plan::Leaf& own = plan_.leaves[leaf];
  const int64_t gap = innermost_stride(plan_, own);
  if (gap == 1 || own.link_count == 0) return {leaf};
  std::vector<std::pair<int64_t, uint32_t>> found;
  const plan::Link& first = plan_.links_of(own)[0];
  for (uint32_t i = 0; i < plan_.leaves.size(); ++i) {
    const plan::Leaf& other = plan_.leaves[i];
    if (other.link_count != own.link_count || arrays_[i] == nullptr || other.shape != own.shape) continue;
    const plan::Link& link = plan_.links_of(other)[0];
    const plan::Walk &a = plan_.walks[link.walk], &b = plan_.walks[first.walk];
    if (link.tensor == first.tensor && a.extents == b.extents && a.huggingface_strides == b.huggingface_strides &&
        arrays_[i]->spec().dtype == arrays_[leaf]->spec().dtype &&
        arrays_[i]->spec().chunk_shape == arrays_[leaf]->spec().chunk_shape)
      found.emplace_back(link.huggingface_offset, i);
  }
  std::ranges::sort(found);
  std::vector<uint32_t> out;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].first != found[0].first + static_cast<int64_t>(i)) return {leaf};
    out.push_back(found[i].second);
  }
  return static_cast<int64_t>(out.size()) == gap ? out : std::vector<uint32_t>{leaf};
}

Shape ExportPipeline::choose_box(uint32_t leaf, const Shape& chunk_shape) const {
  const Shape& shape = plan_.leaves[leaf].shape;
  Shape box = chunk_shape;
  for (size_t axis = 0; axis < box.size(); ++axis) box[axis] = std::min(box[axis], shape[axis]);
  const int64_t element = dtype_bytes(arrays_[leaf]->spec().dtype);
  for (size_t axis : axes_by_stride(leaf)) {
    const int64_t most = kUnitBytes / std::max<int64_t>(1, element_count(box) * element);
    if (most <= 1 || run_bytes(leaf, box) >= kLongRunBytes) break;
    box[axis] = std::min(shape[axis], box[axis] * most);
    if (box[axis] < shape[axis]) break;
  }
  return box;
}

/// The axis that is contiguous in the tensor first.
std::vector<size_t> ExportPipeline::axes_by_stride(uint32_t leaf) const {
  const std::vector<int64_t> strides = tensor_strides(plan_, plan_.leaves[leaf]);
  std::vector<size_t> order(strides.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t axis) { return strides[axis]; });
  return order;
}

int64_t ExportPipeline::run_bytes(uint32_t leaf, const Shape& box) const {
  const Shape& shape = plan_.leaves[leaf].shape;
  const std::vector<int64_t> strides = tensor_strides(plan_, plan_.leaves[leaf]);
  int64_t run = 1;
  for (size_t axis : axes_by_stride(leaf)) {
    if (strides[axis] == kOtherTensor) break;
    run *= box[axis];
    if (box[axis] < shape[axis]) break;
  }
  return run * dtype_bytes(arrays_[leaf]->spec().dtype);
}

/// The chunks that this program would have written for as many devices as the array is cut for, where its own are bad.
std::optional<Shape> ExportPipeline::choose_tile(uint32_t leaf) const {
  const zarr::ArraySpec& spec = arrays_[leaf]->spec();
  const int64_t element = dtype_bytes(spec.dtype);
  const int64_t run = run_bytes(leaf, choose_box(leaf, spec.chunk_shape));
  const bool large = zarr::chunk_bytes(spec) > kUnitBytes;
  if (spec.shape.empty() || element_count(spec.shape) * element < kSmallArrayBytes || (run >= kShortRunBytes && !large))
    return std::nullopt;
  int axis = -1;
  for (size_t i = 0; i < spec.shape.size() && axis < 0; ++i)
    if (spec.chunk_shape[i] < spec.shape[i]) axis = static_cast<int>(i);
  const int64_t devices = axis < 0 ? 1 : spec.shape[static_cast<size_t>(axis)] / spec.chunk_shape[static_cast<size_t>(axis)];
  const Shape tile = choose_grid(plan_, plan_.leaves[leaf], {chunk_bytes_, element, axis, static_cast<int>(devices)}).chunk_shape;
  if (!large && run_bytes(leaf, choose_box(leaf, tile)) < 2 * run) return std::nullopt;
  return tile;
}

ExportPipeline::Group ExportPipeline::make_group(uint32_t leaf) const {
  Group group{companions(leaf), {}, {}};
  const std::optional<Shape> tile = choose_tile(leaf);
  group.box = choose_box(leaf, tile ? *tile : arrays_[leaf]->spec().chunk_shape);
  const Shape& shape = plan_.leaves[leaf].shape;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    group.counts.push_back((shape[axis] + group.box[axis] - 1) / group.box[axis]);
  if (!tile) return group;
  for (uint32_t i : group.leaves) group.rechunked.push_back(std::make_unique<Rechunked>(*arrays_[i], *tile));
  group.units_left = std::make_unique<std::atomic<uint64_t>>(static_cast<uint64_t>(element_count(group.counts)));
  return group;
}

void ExportPipeline::make_groups() {
  std::vector<bool> taken(plan_.leaves.size(), false);
  for (uint32_t leaf = 0; leaf < plan_.leaves.size(); ++leaf) {
    if (taken[leaf] || arrays_[leaf] == nullptr || plan_.leaves[leaf].link_count == 0) continue;
    groups_.push_back(make_group(leaf));
    for (uint32_t i : groups_.back().leaves) taken[i] = true;
  }
}

/// Each thread may be at a group of its own.
uint64_t ExportPipeline::scratch_bytes() const {
  std::vector<uint64_t> sizes;
  for (const Group& group : groups_) {
    sizes.push_back(0);
    for (const auto& array : group.rechunked) sizes.back() += array->bytes();
  }
  std::ranges::sort(sizes, std::greater<>());
  return std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(2, sizes.size())), uint64_t{0});
}

/// One thread cuts the arrays anew, with the help of as many as there are; the others wait for it.
Result<> ExportPipeline::rechunk(size_t group, const ScratchFolder& scratch, const PipelineOptions& options,
                                 const Cancelled& cancelled) {
  for (size_t i = 0; i < groups_[group].rechunked.size(); ++i) {
    const uint32_t leaf = groups_[group].leaves[i];
    MAXPORT_RETURN_IF_ERROR(with_context(
        groups_[group].rechunked[i]->make(*scratch.storage, tiles_path(scratch, leaf), forecast(options).threads, cancelled),
        "reading " + plan_.leaves[leaf].path));
  }
  return {};
}

/// After a unit: the last one removes the temporary files.
Result<> ExportPipeline::release(Group& group, const ScratchFolder& scratch) {
  if (!group.units_left || --*group.units_left > 0) return {};
  for (const auto& array : group.rechunked) MAXPORT_RETURN_IF_ERROR(array->drop(*scratch.storage));
  return {};
}

/// A power loss can bring back a temporary file that was removed before the last segment that needed it was recorded.
Result<> ExportPipeline::remove_remains(const ScratchFolder& scratch) const {
  for (const Group& group : groups_)
    for (size_t i = 0; i < group.rechunked.size(); ++i)
      MAXPORT_RETURN_IF_ERROR(scratch.storage->remove_all(tiles_path(scratch, group.leaves[i])));
  return {};
}

uint64_t ExportPipeline::unit_bytes(const Group& group) const {
  const zarr::ArraySpec& spec = arrays_[group.leaves[0]]->spec();
  const auto box = static_cast<uint64_t>(element_count(group.box) * dtype_bytes(spec.dtype));
  const uint64_t extra = static_cast<uint64_t>(kPieceBytes) + (uint64_t{2} << 20);
  // The gathered boxes, and a chunk encoded and decoded or what cutting anew takes.
  if (!group.rechunked.empty()) return box * group.leaves.size() + group.rechunked[0]->thread_bytes() + extra;
  return box * group.leaves.size() + 2 * static_cast<uint64_t>(zarr::chunk_bytes(spec)) + extra;
}

MemoryForecast ExportPipeline::forecast(const PipelineOptions& options) const {
  MemoryForecast out;
  for (const Group& group : groups_) out.per_thread = std::max(out.per_thread, unit_bytes(group));
  const uint64_t budget = options.max_memory ? options.max_memory : default_memory(options.threads);
  const uint64_t available = budget > kProcessBytes ? budget - kProcessBytes : 0;
  out.threads = static_cast<int>(std::clamp<uint64_t>(available / std::max<uint64_t>(out.per_thread, 1), 1,
                                                      static_cast<uint64_t>(std::max(1, options.threads))));
  out.total = kProcessBytes + out.per_thread * static_cast<uint64_t>(out.threads);
  return out;
}

Result<> ExportPipeline::write_region(const Group& group, const plan::Link& link, const Region& region,
                                      TensorWriter& out, Worker& worker) const {
  const auto alternating = static_cast<int64_t>(group.leaves.size());
  const size_t rank = region.walk.extents.size();
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return region.walk.source_strides[i]; });
  const DType stored = arrays_[group.leaves[0]]->spec().dtype, target = dtypes_[group.leaves[0]];
  const int64_t element = dtype_bytes(target);
  if (region.element_count() * alternating * element > kPieceBytes && rank > 0 && region.walk.extents[order[0]] > 1) {
    // Halve along the outermost step; few levels, since a unit is bounded.
    Region half = region;
    const size_t axis = order[0];
    half.walk.extents[axis] = region.walk.extents[axis] / 2;
    MAXPORT_RETURN_IF_ERROR(write_region(group, link, half, out, worker));
    half.tensor_offset += half.walk.extents[axis] * region.walk.source_strides[axis];
    half.box_offset += half.walk.extents[axis] * region.walk.target_strides[axis];
    half.walk.extents[axis] = region.walk.extents[axis] - half.walk.extents[axis];
    return write_region(group, link, half, out, worker);
  }

  // Dense in the tensor's order; alternating leaves side by side.
  StridedWalk walk;
  std::vector<int64_t> extents, strides;  // of the tensor side, outermost first
  for (size_t i : order) {
    extents.push_back(region.walk.extents[i]);
    strides.push_back(region.walk.source_strides[i]);
    walk.extents.push_back(region.walk.extents[i]);
    walk.source_strides.push_back(region.walk.target_strides[i]);
  }
  if (alternating > 1) {
    extents.push_back(alternating);
    strides.push_back(1);
  }
  const std::vector<int64_t> dense = row_major_strides(extents);
  walk.target_strides.assign(dense.begin(), dense.begin() + static_cast<std::ptrdiff_t>(rank));
  const MutableByteSpan piece = worker.piece.take(static_cast<size_t>(element_count(extents) * element));
  for (size_t i = 0; i < group.leaves.size(); ++i) {
    const models::Arithmetic& arithmetic = plan_.leaves[group.leaves[i]].arithmetic;
    const ElementOp op{stored, target, op_kind(arithmetic.kind), arithmetic.to_huggingface, target};
    strided_copy(walk, op, worker.boxes[i].content().data() + region.box_offset * dtype_bytes(stored),
                 piece.data() + static_cast<int64_t>(i) * element);
  }

  size_t outer = extents.size();
  int64_t run = 1;
  while (outer > 0 && (extents[outer - 1] == 1 || strides[outer - 1] == run)) run *= extents[--outer];
  const int64_t runs = element_count(std::span(extents).first(outer));
  std::vector<int64_t> at(outer, 0);
  for (int64_t i = 0; i < runs; ++i) {
    int64_t offset = region.tensor_offset;
    for (size_t k = 0; k < outer; ++k) offset += at[k] * strides[k];
    MAXPORT_RETURN_IF_ERROR(out.write(link.tensor, static_cast<uint64_t>(offset * element),
                                      piece.subspan(static_cast<size_t>(i * run * element), static_cast<size_t>(run * element))));
    for (size_t k = outer; k-- > 0;) {
      if (++at[k] < extents[k]) break;
      at[k] = 0;
    }
  }
  return {};
}

Result<> ExportPipeline::write_regions(const Group& group, const Box& box, TensorWriter& out, Worker& worker) const {
  // Alternating leaves share their geometry; the first one's links speak for all.
  const plan::Leaf& leaf = plan_.leaves[group.leaves[0]];
  Result<> status;
  for (const plan::Link& link : plan_.links_of(leaf)) {
    const LinkGeometry geometry(plan_, leaf, link);
    if (intersect(geometry.bounds(), box).empty()) continue;
    geometry.within(box, box.shape, [&](Region&& region) {
      if (status) status = write_region(group, link, region, out, worker);
    });
    if (!status) return with_context(std::move(status), "writing " + plan_.tensors[link.tensor].name);
  }
  return status;
}

Result<> ExportPipeline::read_box(const Group& group, size_t leaf, const Box& box, MutableByteSpan out, Worker& worker) const {
  if (!group.rechunked.empty()) return group.rechunked[leaf]->read(box, out, worker.scratch);
  return arrays_[group.leaves[leaf]]->read(box, out, worker.scratch);
}

Result<> ExportPipeline::run_unit(const Group& group, uint64_t unit, TensorWriter& out, Worker& worker) const {
  const Shape& shape = plan_.leaves[group.leaves[0]].shape;
  Box box = Box::whole(shape);
  for (size_t axis = shape.size(); axis-- > 0;) {
    const auto position = static_cast<int64_t>(unit % static_cast<uint64_t>(group.counts[axis]));
    unit /= static_cast<uint64_t>(group.counts[axis]);
    box.origin[axis] = position * group.box[axis];
    box.shape[axis] = std::min(group.box[axis], shape[axis] - box.origin[axis]);
  }
  for (size_t i = 0; i < group.leaves.size(); ++i) {
    const DType dtype = arrays_[group.leaves[i]]->spec().dtype;
    const auto bytes = static_cast<size_t>(element_count(box.shape) * dtype_bytes(dtype));
    MAXPORT_RETURN_IF_ERROR(read_box(group, i, box, worker.boxes[i].take(bytes), worker));
  }
  return write_regions(group, box, out, worker);
}

/// Buffers of their final size at once: growing step by step leaves holes that the allocator keeps.
void ExportPipeline::prepare(Worker& worker) const {
  std::vector<size_t> largest;
  for (const Group& group : groups_) {
    largest.resize(std::max(largest.size(), group.leaves.size()));
    for (size_t i = 0; i < group.leaves.size(); ++i)
      largest[i] = std::max(largest[i], static_cast<size_t>(element_count(group.box) *
                                                            dtype_bytes(arrays_[group.leaves[i]]->spec().dtype)));
  }
  worker.boxes.resize(largest.size());
  for (size_t i = 0; i < largest.size(); ++i) worker.boxes[i].take(largest[i]);
  worker.piece.take(static_cast<size_t>(kPieceBytes));
}

Result<Finisher::Task> ExportPipeline::write_segment(size_t index, TensorWriter& out, const PipelineOptions& options,
                                                     const ScratchFolder& scratch, const Cancelled& cancelled, Worker& worker) {
  const Segment& segment = segments_[index];
  for (uint64_t unit = segment.first_unit; unit < segment.first_unit + segment.unit_count; ++unit) {
    if (cancelled()) return fail(ErrorKind::kInterrupted, "stopped");
    const size_t group = group_of(unit);
    MAXPORT_RETURN_IF_ERROR(rechunk(group, scratch, options, cancelled));
    MAXPORT_RETURN_IF_ERROR(run_unit(groups_[group], unit - first_unit_[group], out, worker));
    MAXPORT_RETURN_IF_ERROR(release(groups_[group], scratch));
    progress_.bytes_done += raw_bytes(unit);
  }
  return [&options, index]() -> Result<> {
    SegmentResult result;
    result.record.index = index;
    return options.finished ? options.finished(result) : Result<>();
  };
}

Result<> ExportPipeline::run(TensorWriter& out, const ScratchFolder& scratch, const PipelineOptions& options) {
  SegmentRun run{.count = segments_.size(), .threads = forecast(options).threads, .is_done = {}, .cancelled = options.cancelled, .start_thread = {}};
  run.is_done = [&](size_t segment) { return segments_[segment].adopted; };
  run.start_thread = [&]() -> MakeSegment {
    const auto worker = std::make_shared<Worker>();
    prepare(*worker);
    return [&, worker](size_t segment, const Cancelled& cancelled) {
      return write_segment(segment, out, options, scratch, cancelled, *worker);
    };
  };
  MAXPORT_RETURN_IF_ERROR(run_segments(run));
  return remove_remains(scratch);
}

}  // namespace maxport::engine
