#include "engine/pipeline.h"

#include <algorithm>

#include "base/buffer.h"
#include "base/digest.h"
#include "zarr/chunk.h"

namespace maxport::engine {
namespace {

/// Raw bytes that a segment should hold: small enough to share work and to lose little at an interruption, large enough
/// to keep the number of data files low.
constexpr uint64_t kMinimumSegmentBytes = uint64_t{8} << 20;
constexpr uint64_t kMaximumSegmentBytes = uint64_t{128} << 20;
constexpr uint64_t kSegmentsWanted = 64;

uint64_t chunk_raw_bytes(const LeafJob& job) { return static_cast<uint64_t>(zarr::chunk_bytes(job.spec)); }

/// Numbers of bands along each axis: the chunk grid with the band axis folded.
Shape band_counts(const LeafJob& job) {
  Shape counts = job.grid.counts(job.reader.shape());
  if (job.grid.band_axis >= 0) counts[static_cast<size_t>(job.grid.band_axis)] = 1;
  return counts;
}

std::vector<int64_t> unravel(uint64_t index, std::span<const int64_t> counts) {
  std::vector<int64_t> position(counts.size());
  for (size_t axis = counts.size(); axis-- > 0;) {
    position[axis] = static_cast<int64_t>(index % static_cast<uint64_t>(counts[axis]));
    index /= static_cast<uint64_t>(counts[axis]);
  }
  return position;
}

size_t ravel(std::span<const int64_t> position, std::span<const int64_t> counts) {
  size_t index = 0;
  for (size_t axis = 0; axis < counts.size(); ++axis)
    index = index * static_cast<size_t>(counts[axis]) + static_cast<size_t>(position[axis]);
  return index;
}

/// What weights of so many bytes are likely to take when they are stored: a little above two thirds when compressed.
uint64_t stored_bytes(const LeafJob& job, uint64_t bytes) {
  return zarr::compresses(job.spec) ? bytes / 10 * 7 : bytes;
}

/// What a thread needs besides its source window: the raw chunk, its encoded form and the codec's working memory.
uint64_t chunk_work_bytes(const LeafJob& job) { return 3 * chunk_raw_bytes(job) + (uint64_t{2} << 20); }

}  // namespace

struct Pipeline::Worker {
  SourceWindow window;
  Buffer chunk;
  zarr::Scratch scratch;
  std::vector<uint64_t> digests;
  std::string key;
  uint64_t allowance = 0;  // bytes for window and chunk together
};

uint64_t default_memory(int threads) {
  return kProcessBytes + kThreadBytes * static_cast<uint64_t>(std::max(threads, 1));
}

Pipeline::Pipeline(std::vector<LeafJob> jobs, uint64_t first_segment, uint64_t segment_bytes)
    : jobs_(std::move(jobs)), first_segment_(first_segment) {
  first_band_.push_back(0);
  for (const LeafJob& job : jobs_) {
    first_band_.push_back(first_band_.back() + static_cast<uint64_t>(element_count(band_counts(job))));
    const auto chunks = static_cast<size_t>(element_count(job.grid.counts(job.reader.shape())));
    chunk_count_ += chunks;
    digests_.emplace_back(chunks, 0);
    progress_.bytes_total += chunks * chunk_raw_bytes(job);
  }
  measure_needs();
  cut_segments(segment_bytes);
  adopted_.assign(segments_.size(), false);
}

void Pipeline::cut_segments(uint64_t segment_bytes) {
  const uint64_t wanted =
      segment_bytes ? segment_bytes
                    : std::clamp(progress_.bytes_total / kSegmentsWanted, kMinimumSegmentBytes, kMaximumSegmentBytes);
  Segment open{0, 0, 0};
  uint64_t bytes = 0;
  for (const LeafJob& job : jobs_) {
    const auto band_count = static_cast<uint64_t>(element_count(band_counts(job)));
    const uint64_t chunks = static_cast<uint64_t>(element_count(job.grid.counts(job.reader.shape())));
    const uint64_t band_bytes = chunks / std::max<uint64_t>(band_count, 1) * chunk_raw_bytes(job);
    for (uint64_t band = 0; band < band_count; ++band) {
      ++open.band_count;
      open.expected_bytes += stored_bytes(job, band_bytes);
      bytes += band_bytes;
      if (bytes < wanted) continue;
      segments_.push_back(open);
      open = {open.first_band + open.band_count, 0, 0};
      bytes = 0;
    }
  }
  if (open.band_count > 0) segments_.push_back(open);
}

Pipeline::BandRef Pipeline::find_band(uint64_t band) const {
  const auto next = std::ranges::upper_bound(first_band_, band);
  const auto job = static_cast<size_t>(next - first_band_.begin()) - 1;
  return {static_cast<uint32_t>(job), band - first_band_[job]};
}

void Pipeline::measure_needs() {
  for (const LeafJob& job : jobs_) {
    const std::vector<int64_t> origin(job.reader.shape().size(), 0);
    const uint64_t work = chunk_work_bytes(job);
    band_need_ = std::max(band_need_, job.reader.window_bytes(job.grid.band_box(job.reader.shape(), origin)) + work);
    chunk_need_ = std::max(chunk_need_, job.reader.window_bytes(job.grid.chunk_box(job.reader.shape(), origin)) + work);
  }
}

Result<MemoryForecast> Pipeline::forecast(const PipelineOptions& options) const {
  const uint64_t budget = options.max_memory ? options.max_memory : default_memory(options.threads);
  const uint64_t available = budget > kProcessBytes ? budget - kProcessBytes : 0;
  if (available < chunk_need_)
    return fail(ErrorKind::kResourceLimit,
                "max_memory is {} MiB, but one chunk of this model needs {} MiB on top of {} MiB for the program; "
                "pass --max_memory={}MB or more",
                budget >> 20, (chunk_need_ >> 20) + 1, kProcessBytes >> 20, ((kProcessBytes + chunk_need_) >> 20) + 1);
  MemoryForecast out;
  out.threads = static_cast<int>(std::clamp<uint64_t>(available / std::max<uint64_t>(band_need_, 1), 1,
                                                      static_cast<uint64_t>(std::max(options.threads, 1))));
  out.whole_bands = band_need_ <= available / static_cast<uint64_t>(out.threads);
  out.per_thread = out.whole_bands ? band_need_ : available;
  out.total = kProcessBytes + out.per_thread * static_cast<uint64_t>(out.threads);
  return out;
}

void Pipeline::store_digests(size_t segment, const std::vector<uint64_t>& digests) {
  size_t next = 0;
  Result<> status;
  for (uint64_t band = 0; band < segments_[segment].band_count; ++band) {
    const BandRef ref = find_band(segments_[segment].first_band + band);
    const Shape counts = jobs_[ref.job].grid.counts(jobs_[ref.job].reader.shape());
    visit_chunks(ref, [&](std::span<const int64_t> position) -> Result<> {
      digests_[ref.job][ravel(position, counts)] = next < digests.size() ? digests[next] : 0;
      ++next;
      return {};
    }, status);
  }
}

Result<> Pipeline::adopt(SegmentResult result, KeyValueWriter& store) {
  const uint64_t index = result.record.index - first_segment_;
  if (index >= segments_.size() || adopted_[index])
    return fail(ErrorKind::kCorruptData, "the journal names segment {}, which this conversion does not have",
                result.record.index);
  adopted_[index] = true;
  store_digests(index, result.digests);
  for (uint64_t band = 0; band < segments_[index].band_count; ++band) {
    const BandRef ref = find_band(segments_[index].first_band + band);
    const Shape counts = jobs_[ref.job].grid.counts(jobs_[ref.job].reader.shape());
    const uint64_t chunks = jobs_[ref.job].grid.band_axis < 0
                                ? 1
                                : static_cast<uint64_t>(counts[static_cast<size_t>(jobs_[ref.job].grid.band_axis)]);
    progress_.bytes_done += chunks * chunk_raw_bytes(jobs_[ref.job]);
  }
  return store.adopt(std::move(result.record));
}

void Pipeline::visit_chunks(const BandRef& ref, const std::function<Result<>(std::span<const int64_t>)>& visit,
                            Result<>& status) const {
  const LeafJob& job = jobs_[ref.job];
  std::vector<int64_t> position = unravel(ref.band, band_counts(job));
  if (job.grid.band_axis < 0) {
    status = visit(position);
    return;
  }
  const auto axis = static_cast<size_t>(job.grid.band_axis);
  const int64_t count = job.grid.counts(job.reader.shape())[axis];
  for (position[axis] = 0; position[axis] < count && status; ++position[axis]) status = visit(position);
}

Result<> Pipeline::write_band(const BandRef& ref, maxport::Segment& out, const Cancelled& cancelled, Worker& worker) {
  const LeafJob& job = jobs_[ref.job];
  const Shape& shape = job.reader.shape();
  const Box band = job.grid.band_box(shape, unravel(ref.band, band_counts(job)));
  const uint64_t raw = chunk_raw_bytes(job);
  const bool whole = job.grid.band_axis < 0 || job.reader.window_bytes(band) + chunk_work_bytes(job) <= worker.allowance;
  if (whole) MAXPORT_RETURN_IF_ERROR(job.reader.load(band, worker.window));
  const MutableByteSpan chunk = worker.chunk.take(raw + zarr::kChunkSpareBytes).first(raw);
  Result<> status;
  visit_chunks(ref, [&](std::span<const int64_t> position) -> Result<> {
    if (cancelled()) return fail(ErrorKind::kInterrupted, "stopped");
    const Box box = job.grid.chunk_box(shape, position);
    if (!whole) MAXPORT_RETURN_IF_ERROR(job.reader.load(box, worker.window));
    job.reader.fill(box, job.grid.chunk_shape, worker.window, chunk);
    worker.digests.push_back(xxh64(chunk));
    MAXPORT_ASSIGN_OR_RETURN(const ByteSpan encoded, zarr::encode_chunk_in_place(job.spec, chunk, worker.scratch));
    worker.key.assign(job.name).push_back('/');
    zarr::append_chunk_key(job.spec, position, worker.key);
    MAXPORT_RETURN_IF_ERROR(out.put(worker.key, encoded));
    progress_.bytes_done += raw;
    progress_.bytes_written += encoded.size();
    return {};
  }, status);
  return status;
}

Result<Finisher::Task> Pipeline::write_segment(size_t segment, KeyValueWriter& store, const PipelineOptions& options,
                                               const Cancelled& cancelled, Worker& worker) {
  MAXPORT_ASSIGN_OR_RETURN(std::unique_ptr<maxport::Segment> out, store.start_segment(first_segment_ + segment));
  out->expect(segments_[segment].expected_bytes);
  worker.digests.clear();
  for (uint64_t band = 0; band < segments_[segment].band_count; ++band) {
    const BandRef ref = find_band(segments_[segment].first_band + band);
    MAXPORT_RETURN_IF_ERROR(with_context(write_band(ref, *out, cancelled, worker), "converting " + jobs_[ref.job].name));
  }
  return [this, segment, &options, out = std::shared_ptr(std::move(out)), digests = worker.digests]() -> Result<> {
    MAXPORT_ASSIGN_OR_RETURN(SegmentRecord record, out->finish(options.sync));
    store_digests(segment, digests);
    return options.finished ? options.finished({std::move(record), digests}) : Result<>();
  };
}

Result<> Pipeline::run(KeyValueWriter& store, const PipelineOptions& options) {
  MAXPORT_ASSIGN_OR_RETURN(const MemoryForecast memory, forecast(options));
  SegmentRun run{.count = segments_.size(), .threads = memory.threads, .is_done = {}, .cancelled = options.cancelled, .start_thread = {}};
  run.is_done = [&](size_t segment) { return adopted_[segment]; };
  run.start_thread = [&]() -> MakeSegment {
    const auto worker = std::make_shared<Worker>();
    worker->allowance = memory.per_thread;
    return [&, worker](size_t segment, const Cancelled& cancelled) {
      return write_segment(segment, store, options, cancelled, *worker);
    };
  };
  return run_segments(run);
}

}  // namespace maxport::engine
