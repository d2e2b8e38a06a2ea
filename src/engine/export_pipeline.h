// Runs a conversion towards Hugging Face: decode, cast, permute, write in place, on several threads.
//
// The work follows the chunks as they are stored, whoever stored them: each is decoded once. Chunks that lie side by side
// along the axis that is contiguous in the Hugging Face tensors are handled together, so that what is written is as
// contiguous as memory allows. Every byte of every tensor has its place from the start, so the files are the same for any
// number of threads. The work is cut into segments; a later run may skip those that an earlier one finished.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/pipeline.h"
#include "engine/rechunked.h"
#include "engine/region.h"
#include "plan/plan.h"
#include "zarr/array_reader.h"

namespace maxport::engine {

/// Where arrays may be cut anew (rechunked.h): a folder that nobody else writes to and that has room.
struct ScratchFolder {
  Storage* storage = nullptr;
  std::string path;
};

/// The target side: the plan's tensors, written by range.
class TensorWriter {
 public:
  virtual ~TensorWriter() = default;
  /// `tensor` is an index into Plan::tensors. Safe from several threads for disjoint ranges.
  virtual Result<> write(uint32_t tensor, uint64_t byte_offset, ByteSpan bytes) = 0;
};

class ExportPipeline {
 public:
  /// `arrays` has one reader a leaf of the plan, null for constants, which are dropped; `dtypes` has the type that the
  /// tensors of each leaf get. Everything must outlive the
  /// pipeline; shapes must have been checked against the plan.
  ExportPipeline(const plan::Plan& plan, std::vector<const zarr::ArrayReader*> arrays, std::vector<DType> dtypes);

  Progress& progress() { return progress_; }
  /// Threads that the memory budget allows, and the peak.
  MemoryForecast forecast(const PipelineOptions& options) const;
  size_t segment_count() const { return segments_.size(); }
  /// Leaves out a segment that an earlier run finished; kCorruptData when there is none of that number.
  Result<> adopt(uint64_t segment);
  /// The most bytes that run() may have in the scratch folder at once.
  uint64_t scratch_bytes() const;
  /// options.finished is told each segment's number once all of it was written; making it durable is its business.
  Result<> run(TensorWriter& out, const ScratchFolder& scratch, const PipelineOptions& options);

 private:
  /// Leaves that are handled together: one, or those whose elements alternate within one tensor.
  struct Group {
    std::vector<uint32_t> leaves;
    Shape box;     ///< of a unit of work, in elements; whole chunks
    Shape counts;  ///< units along each axis
    std::vector<std::unique_ptr<Rechunked>> rechunked = {};  ///< by leaf; empty when the chunks serve as they are
    std::unique_ptr<std::atomic<uint64_t>> units_left = {};  ///< that read them
  };
  struct Segment {
    uint64_t first_unit, unit_count;
    bool adopted = false;
  };
  struct Worker;

  void make_groups();
  void cut_segments();
  size_t group_of(uint64_t unit) const;
  uint64_t raw_bytes(uint64_t unit) const;
  void prepare(Worker& worker) const;
  Result<Finisher::Task> write_segment(size_t index, TensorWriter& out, const PipelineOptions& options,
                                       const ScratchFolder& scratch, const Cancelled& cancelled, Worker& worker);
  Shape choose_box(uint32_t leaf, const Shape& chunk_shape) const;
  /// Bytes that lie side by side in the tensor when the box's are written.
  int64_t run_bytes(uint32_t leaf, const Shape& box) const;
  std::vector<size_t> axes_by_stride(uint32_t leaf) const;
  std::optional<Shape> choose_tile(uint32_t leaf) const;
  Group make_group(uint32_t leaf) const;
  Result<> read_box(const Group& group, size_t leaf, const Box& box, MutableByteSpan out, Worker& worker) const;
  Result<> rechunk(size_t group, const ScratchFolder& scratch, const PipelineOptions& options, const Cancelled& cancelled);
  Result<> release(Group& group, const ScratchFolder& scratch);
  Result<> remove_remains(const ScratchFolder& scratch) const;
  std::vector<uint32_t> companions(uint32_t leaf) const;
  uint64_t unit_bytes(const Group& group) const;
  Result<> run_unit(const Group& group, uint64_t unit, TensorWriter& out, Worker& worker) const;
  Result<> write_regions(const Group& group, const Box& box, TensorWriter& out, Worker& worker) const;
  Result<> write_region(const Group& group, const plan::Link& link, const Region& region, TensorWriter& out,
                        Worker& worker) const;

  const plan::Plan& plan_;
  int64_t chunk_bytes_;  // of arrays cut anew
  std::vector<const zarr::ArrayReader*> arrays_;
  std::vector<DType> dtypes_;
  std::vector<Group> groups_;
  std::vector<uint64_t> first_unit_;
  std::vector<Segment> segments_;
  Progress progress_;
};

}  // namespace maxport::engine
