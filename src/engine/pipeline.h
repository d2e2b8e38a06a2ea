// Runs a conversion towards MaxText: read, permute and cast, encode, write, chunk by chunk on several threads.
//
// The work is cut into segments, each a run of bands that one thread writes to one data file in order. Which bands make a
// segment depends on the leaves alone, so the bytes written are the same for any number of threads and any memory
// budget. A finished segment is durable and can be recorded; a later run that is given the record skips it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/grid.h"
#include "engine/leaf_reader.h"
#include "engine/run_segments.h"
#include "storage/key_value_store.h"
#include "zarr/array_spec.h"

namespace maxport::engine {

/// Memory that the program uses besides the bulk buffers: code, headers, plan, metadata. Measured, see
/// docs/performance.md.
inline constexpr uint64_t kProcessBytes = uint64_t{20} << 20;
/// What one thread needs for the largest band that choose_grid makes.
inline constexpr uint64_t kThreadBytes = uint64_t{48} << 20;

/// One array to be written.
struct LeafJob {
  std::string name;  ///< its key prefix in the store: "params.params.decoder..."
  LeafReader reader;
  ChunkGrid grid;
  zarr::ArraySpec spec;
};

/// XXH3-64 of each chunk's raw bytes (full chunk size), in row-major order of the chunk grid.
using ChunkDigests = std::vector<uint64_t>;

/// A finished segment: what the store keeps of it, and the digests of its chunks in the order they were written.
struct SegmentResult {
  SegmentRecord record;
  std::vector<uint64_t> digests;
};

struct PipelineOptions {
  int threads = 1;
  uint64_t max_memory = 0;  ///< bytes; 0 means default_memory(threads)
  bool sync = true;         ///< make each segment durable before it is told about
  /// Asked between bands; true ends the run with kInterrupted.
  std::function<bool()> cancelled;
  /// Told about each finished segment, one at a time, from a thread of its own.
  std::function<Result<>(const SegmentResult&)> finished;
};

struct Progress {
  std::atomic<uint64_t> bytes_done{0};  ///< of the target's raw bytes
  std::atomic<uint64_t> bytes_written{0};  ///< encoded
  uint64_t bytes_total = 0;
};

struct MemoryForecast {
  uint64_t total = 0;       ///< peak, all threads and kProcessBytes
  uint64_t per_thread = 0;
  int threads = 1;          ///< that the budget allows
  bool whole_bands = true;  ///< false: some bands do not fit and are made chunk by chunk, with smaller reads
};

uint64_t default_memory(int threads);

class Pipeline {
 public:
  /// First segment that this pipeline writes has this index in the store; earlier ones are the caller's. Segments hold
  /// about `segment_bytes` of raw data; 0 chooses by the size of the whole.
  explicit Pipeline(std::vector<LeafJob> jobs, uint64_t first_segment = 0, uint64_t segment_bytes = 0);

  size_t segment_count() const { return segments_.size(); }
  uint64_t chunk_count() const { return chunk_count_; }
  uint64_t raw_bytes() const { return progress_.bytes_total; }
  const std::vector<LeafJob>& jobs() const { return jobs_; }
  Progress& progress() { return progress_; }

  /// What running with these options will need. kResourceLimit when the budget cannot hold even one chunk's work.
  Result<MemoryForecast> forecast(const PipelineOptions& options) const;

  /// Takes a finished segment of an earlier run instead of writing it.
  Result<> adopt(SegmentResult result, KeyValueWriter& store);

  /// Writes every segment that was not adopted. The first error stops all threads.
  Result<> run(KeyValueWriter& store, const PipelineOptions& options);

  /// Digests of a job's chunks once everything was written or adopted.
  const ChunkDigests& digests(size_t job) const { return digests_[job]; }

 private:
  struct BandRef {
    uint32_t job;
    uint64_t band;  // row-major number of the band within the leaf
  };
  struct Segment {
    uint64_t first_band, band_count;  // over all leaves
    uint64_t expected_bytes;          // as they will be stored
  };
  struct Worker;

  void measure_needs();
  void cut_segments(uint64_t segment_bytes);
  BandRef find_band(uint64_t band) const;
  Result<Finisher::Task> write_segment(size_t segment, KeyValueWriter& store, const PipelineOptions& options,
                                       const Cancelled& cancelled, Worker& worker);
  Result<> write_band(const BandRef& ref, maxport::Segment& out, const Cancelled& cancelled, Worker& worker);
  void visit_chunks(const BandRef& ref, const std::function<Result<>(std::span<const int64_t>)>& visit,
                    Result<>& status) const;
  void store_digests(size_t segment, const std::vector<uint64_t>& digests);

  std::vector<LeafJob> jobs_;
  std::vector<uint64_t> first_band_;  // of each job, and the total
  std::vector<Segment> segments_;
  std::vector<bool> adopted_;
  std::vector<ChunkDigests> digests_;
  uint64_t first_segment_;
  uint64_t chunk_count_ = 0;
  uint64_t band_need_ = 0, chunk_need_ = 0;  // bytes of a thread's buffers for the largest band and chunk
  Progress progress_;
};

}  // namespace maxport::engine
