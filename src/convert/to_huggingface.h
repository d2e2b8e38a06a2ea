// A conversion from a MaxText checkpoint to a Hugging Face model directory, from request to published folder.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/checkpoint_source.h"
#include "engine/export_pipeline.h"
#include "huggingface/writer.h"

namespace maxport::convert {

struct ToHuggingfaceOptions {
  std::string output;                    ///< the model folder to make
  DType weight_dtype = DType::kFloat32;  ///< of floating tensors; float8_e4m3fn: as stored
  std::string max_shard_size = std::string(huggingface::kDefaultMaxShardSize);
  std::optional<std::string> hf_folder;  ///< tokenizer and generation files are copied from here
  /// The decoder of a multimodal model as a model of its own, which transformers opens without the towers.
  bool as_text_model = false;
  bool overwrite = false;                ///< replace a folder that is there
  int threads = 1;
  uint64_t max_memory = 0;
  bool sync = true;
  std::function<bool()> cancelled;
};

/// Arithmetic that may have cost bits (docs/exactness.md).
struct InexactStep {
  std::string step;                  ///< "query scale"
  std::string bound;                 ///< how far a weight can be from the original
  std::vector<std::string> tensors;  ///< that went through it
};

struct ToHuggingfaceReport {
  std::string folder;
  size_t tensors = 0;
  size_t segments = 0;
  size_t segments_resumed = 0;
  size_t files = 0;
  uint64_t bytes = 0;
  std::vector<std::string> side_files;
  std::vector<InexactStep> inexact;
};

class ToHuggingface {
 public:
  /// `source` must outlive the conversion.
  static Result<std::unique_ptr<ToHuggingface>> prepare(Storage& storage, const CheckpointSource& source,
                                                        ToHuggingfaceOptions options);

  const std::vector<safetensors::TensorSpec>& tensors() const { return specs_; }
  uint64_t bytes() const;
  engine::MemoryForecast forecast() const;
  engine::Progress& progress() { return pipeline_->progress(); }

  Result<ToHuggingfaceReport> run();

  /// After run(): reads the published folder back and compares every byte with what the checkpoint gives when it is converted
  /// once more. kCorruptData names the tensor and where it differs.
  Result<> check_output() const;

 private:
  ToHuggingface(Storage& storage, const CheckpointSource& source, ToHuggingfaceOptions options)
      : storage_(storage), source_(source), options_(std::move(options)) {}
  Result<> lay_out();
  engine::PipelineOptions pipeline_options() const;
  Json identity() const;
  Result<huggingface::WriterOptions> writer_options() const;
  Result<> set_aside(std::string& old) const;
  Result<> fill(huggingface::ShardedWriter& writer, bool resume, ToHuggingfaceReport& report);
  Json output_config() const;
  /// weight_dtype for floating leaves, others keep theirs (hooks.md 1.2). In float8 checkpoints kernels with block scales
  /// become float8, from whatever type they are stored in, and everything else keeps its type.
  DType exported_dtype(size_t leaf) const;
  Result<> check_dtype() const;
  Result<> check_text_model() const;
  std::string output_name(const std::string& name) const;
  Result<> copy_side_files(const std::string& folder, ToHuggingfaceReport& report) const;
  void name_inexact(ToHuggingfaceReport& report) const;

  Storage& storage_;
  const CheckpointSource& source_;
  ToHuggingfaceOptions options_;
  std::vector<safetensors::TensorSpec> specs_;  // sorted by name
  std::vector<std::vector<size_t>> specs_of_;   // by plan tensor; more than one where files repeat it
  std::unique_ptr<engine::ExportPipeline> pipeline_;
};

}  // namespace maxport::convert
