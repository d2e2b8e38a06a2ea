// A conversion from a Hugging Face model directory to a MaxText checkpoint, from request to published step.
//
//   prepare()   reads headers, plans, checks; writes nothing
//   run()       writes the step under its temporary name, resumes an interrupted run, publishes
//
// The stored bytes depend on the source, the options marked "content" and SOURCE_DATE_EPOCH, never on threads, memory or
// interruptions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convert/model_source.h"
#include "engine/pipeline.h"
#include "orbax/checkpoint_writer.h"

namespace maxport::convert {

struct ToMaxtextOptions {
  std::string base_output_directory;
  int64_t step = 0;
  DType save_dtype = DType::kBfloat16;                          ///< content
  zarr::Compression compression = zarr::Compression::kBlosc;    ///< content
  bool use_ocdbt = true;                                        ///< content
  bool use_zarr3 = true;                                        ///< content
  int devices = 16;                                             ///< content: chunk edges respect their shards
  bool record_sharding = false;                                 ///< content: jax.Array leaves with _sharding
  /// Plain files that go into base_output_directory, path below it and text: the run configuration for MaxText.
  std::vector<std::pair<std::string, std::string>> side_files;
  int64_t timestamp_nsecs = 0;    ///< content: of the checkpoint
  uint64_t segment_bytes = 0;     ///< content: raw bytes of a data file; 0 chooses by the size of the whole
  bool overwrite = false;
  int threads = 1;
  uint64_t max_memory = 0;  ///< bytes; 0: engine::default_memory
  bool sync = true;
  std::function<bool()> cancelled;
};

struct ToMaxtextReport {
  std::string step_directory;
  size_t leaves = 0;
  uint64_t chunks = 0;
  uint64_t raw_bytes = 0;
  size_t segments = 0;
  size_t segments_resumed = 0;
};

/// The file in the step that says what was converted from what, with a digest of every leaf and of the files that describe
/// the tree.
inline constexpr std::string_view kRecordFile = "maxport.json";
/// Beside the temporary folder of an unfinished step: its name, then this.
inline constexpr std::string_view kJournalSuffix = ".maxport-journal";

class ToMaxtext {
 public:
  /// `source` must outlive the conversion and have a good account.
  static Result<std::unique_ptr<ToMaxtext>> prepare(Storage& storage, const ModelSource& source,
                                                    ToMaxtextOptions options);

  uint64_t chunk_count() const { return pipeline_->chunk_count(); }
  uint64_t raw_bytes() const { return pipeline_->raw_bytes(); }
  Result<engine::MemoryForecast> forecast() const;
  engine::Progress& progress() { return pipeline_->progress(); }

  Result<ToMaxtextReport> run();

 private:
  ToMaxtext(Storage& storage, const ModelSource& source, ToMaxtextOptions options)
      : storage_(storage), source_(source), options_(std::move(options)) {}

  Result<> make_jobs();
  Result<zarr::ArraySpec> spec_of(const engine::LeafReader& reader, const engine::ChunkGrid& grid) const;
  engine::PipelineOptions pipeline_options() const;
  Json identity() const;
  Result<bool> check_output() const;
  Result<bool> check_unfinished() const;
  Result<> check_space() const;
  Result<std::unique_ptr<orbax::CheckpointWriter>> open_writer(bool resume) const;
  std::string record_text(const orbax::CheckpointWriter& writer) const;
  Result<> write_side_files() const;
  Result<> publish(orbax::CheckpointWriter& writer);

  Storage& storage_;
  const ModelSource& source_;
  ToMaxtextOptions options_;
  std::string plan_digest_;
  std::unique_ptr<engine::Pipeline> pipeline_;
};

/// The digest that the record keeps of a leaf: XXH3-128 over its chunk digests, little-endian, as hex.
std::string leaf_digest(const engine::ChunkDigests& chunks);

}  // namespace maxport::convert
