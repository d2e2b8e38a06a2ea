#include "convert/to_huggingface.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <numeric>

#include "base/digest.h"
#include "convert/journal.h"
#include "huggingface/side_files.h"
#include "ocdbt/database.h"
#include "plan/check.h"
#include "plan/digest.h"
#include "storage/open_files.h"

namespace maxport::convert {
namespace {

/// The plan's tensors, by their place in the files.
class SpecWriter final : public engine::TensorWriter {
 public:
  SpecWriter(huggingface::ShardedWriter& writer, const std::vector<std::vector<size_t>>& specs_of)
      : writer_(writer), specs_of_(specs_of) {}
  Result<> write(uint32_t tensor, uint64_t byte_offset, ByteSpan bytes) override {
    for (const size_t spec : specs_of_[tensor]) MAXPORT_RETURN_IF_ERROR(writer_.write(spec, byte_offset, bytes));
    return {};
  }

 private:
  huggingface::ShardedWriter& writer_;
  const std::vector<std::vector<size_t>>& specs_of_;
};

/// Where a multimodal model keeps its decoder, and where a text model has it.
constexpr std::string_view kNestedPrefix = "model.language_model.", kTextPrefix = "model.";

/// Text models of transformers that are the decoder of a multimodal one, by the model_type of the text_config.
constexpr std::pair<std::string_view, std::string_view> kTextModels[] = {
    {"gemma3_text", "Gemma3ForCausalLM"}, {"gemma4_text", "Gemma4ForCausalLM"}, {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"}};

std::string_view text_architecture(std::string_view model_type) {
  for (const auto& [type, architecture] : kTextModels)
    if (type == model_type) return architecture;
  return {};
}

constexpr std::string_view kJournalName = "maxport-journal";

/// Multiplying by a power of two loses nothing (but at the ends of the range); anything else may cost the last bit.
bool is_exact(const models::Arithmetic& arithmetic) {
  if (arithmetic.kind == models::Arithmetic::Kind::kCopy) return true;
  return arithmetic.kind == models::Arithmetic::Kind::kMultiply &&
         (std::bit_cast<uint32_t>(arithmetic.to_huggingface) & 0x7fffff) == 0;
}

}  // namespace

Result<std::unique_ptr<ToHuggingface>> ToHuggingface::prepare(Storage& storage, const CheckpointSource& source,
                                                              ToHuggingfaceOptions options) {
  std::unique_ptr<ToHuggingface> out(new ToHuggingface(storage, source, std::move(options)));
  MAXPORT_RETURN_IF_ERROR(out->lay_out());
  std::vector<DType> dtypes;
  for (size_t leaf = 0; leaf < source.plan().leaves.size(); ++leaf) dtypes.push_back(out->exported_dtype(leaf));
  out->pipeline_ = std::make_unique<engine::ExportPipeline>(source.plan(), source.arrays(), std::move(dtypes));
  return out;
}

DType ToHuggingface::exported_dtype(size_t leaf) const {
  if (source_.arrays()[leaf] == nullptr) return options_.weight_dtype;
  const DType stored = source_.arrays()[leaf]->spec().dtype;
  if (!is_floating(stored)) return stored;
  if (options_.weight_dtype != DType::kFloat8E4m3fn) return options_.weight_dtype;
  const std::vector<plan::Leaf>& leaves = source_.plan().leaves;
  const bool scaled = std::ranges::find(leaves, leaves[leaf].path + "_scale", &plan::Leaf::path) != leaves.end();
  return scaled ? DType::kFloat8E4m3fn : stored;
}

Result<> ToHuggingface::check_dtype() const {
  const bool keeps = options_.weight_dtype == DType::kFloat8E4m3fn, float8 = source_.layout().float8_weights;
  if (keeps == float8) return {};
  if (keeps)
    return fail(ErrorKind::kInvalidArgument, "weight_dtype=float8_e4m3fn, but the checkpoint has no float8 kernels");
  return fail(ErrorKind::kUnsupported,
              "weight_dtype={}, but the kernels are float8 and their block scales are not applied here; leave weight_dtype "
              "out (or pass float8_e4m3fn) to keep both as they are",
              dtype_name(options_.weight_dtype));
}

Result<> ToHuggingface::check_text_model() const {
  if (!options_.as_text_model) return {};
  if (source_.layout().use_multimodal)
    return fail(ErrorKind::kInvalidArgument, "--as_text_model leaves out what is not text; pass use_multimodal=false too");
  if (text_architecture(source_.config().section_model_type()).empty())
    return fail(ErrorKind::kUnsupported, "transformers has no text model for the decoder of \"{}\"; leave --as_text_model out",
                printable(source_.config().model_type()));
  return {};
}

std::string ToHuggingface::output_name(const std::string& name) const {
  if (!options_.as_text_model || !name.starts_with(kNestedPrefix)) return name;
  return std::string(kTextPrefix) + name.substr(kNestedPrefix.size());
}

Result<> ToHuggingface::lay_out() {
  MAXPORT_RETURN_IF_ERROR(check_dtype());
  MAXPORT_RETURN_IF_ERROR(check_text_model());
  const plan::Plan& plan = source_.plan();
  std::vector<std::optional<DType>> dtypes(plan.tensors.size());
  for (size_t i = 0; i < plan.leaves.size(); ++i) {
    if (source_.arrays()[i] == nullptr) continue;
    const DType dtype = exported_dtype(i);
    for (const plan::Link& link : plan.links_of(plan.leaves[i])) {
      if (dtypes[link.tensor] && *dtypes[link.tensor] != dtype)
        return fail(ErrorKind::kUnsupported, "{}: its parts are stored as {} and as {}", plan.tensors[link.tensor].name,
                    dtype_name(*dtypes[link.tensor]), dtype_name(dtype));
      dtypes[link.tensor] = dtype;
    }
  }
  std::vector<std::pair<std::string, size_t>> named;  // with the plan's tensor
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    if (!dtypes[i]) return fail(ErrorKind::kInternal, "{} has no source", plan.tensors[i].name);
    named.emplace_back(output_name(plan.tensors[i].name), i);
    for (const models::EqualTensors& pair : source_.map().equal)
      if (pair.kept == plan.tensors[i].name) named.emplace_back(output_name(pair.dropped), i);
  }
  std::ranges::sort(named);
  specs_of_.resize(plan.tensors.size());
  for (const auto& [name, tensor] : named) {
    specs_of_[tensor].push_back(specs_.size());
    specs_.push_back({name, *dtypes[tensor], plan.tensors[tensor].shape});
  }
  return {};
}

uint64_t ToHuggingface::bytes() const {
  uint64_t bytes = 0;
  for (const safetensors::TensorSpec& spec : specs_)
    bytes += static_cast<uint64_t>(element_count(spec.shape) * dtype_bytes(spec.dtype));
  return bytes;
}

engine::PipelineOptions ToHuggingface::pipeline_options() const {
  engine::PipelineOptions out;
  out.threads = options_.threads;
  out.max_memory = options_.max_memory;
  out.sync = options_.sync;
  out.cancelled = options_.cancelled;
  return out;
}

engine::MemoryForecast ToHuggingface::forecast() const { return pipeline_->forecast(pipeline_options()); }

// The configuration as it was, but for the type of the weights.
Json ToHuggingface::output_config() const {
  Json config = source_.config().root();
  if (options_.as_text_model) {
    const Json whole = config;
    config = source_.config().section_json();
    config["architectures"] = Json::array({text_architecture(source_.config().section_model_type())});
    if (!config.contains("tie_word_embeddings") && whole.contains("tie_word_embeddings"))
      config["tie_word_embeddings"] = whole["tie_word_embeddings"];
  }
  if (options_.weight_dtype == DType::kFloat8E4m3fn) return config;
  config.erase("torch_dtype");
  config["dtype"] = dtype_name(options_.weight_dtype);
  for (const char* section : {"text_config", "vision_config", "audio_config"}) {
    if (!config.contains(section) || !config[section].is_object()) continue;
    if (config[section].erase("torch_dtype") > 0 || config[section].contains("dtype"))
      config[section]["dtype"] = dtype_name(options_.weight_dtype);
  }
  return config;
}

/// Everything that decides the bytes of the weight files.
Json ToHuggingface::identity() const {
  std::string tree = orbax::tree_metadata_text(source_.checkpoint().tree_metadata());
  if (const auto& stamp = source_.checkpoint().step_metadata().commit_timestamp_nsecs) tree += std::to_string(*stamp);
  return {{"maxport", MAXPORT_VERSION},
          {"plan", plan::digest(source_.plan())},
          {"checkpoint", source_.checkpoint().path().item_directory},
          {"tree", xxh128_hex(as_bytes(tree))},
          {"weight_dtype", dtype_name(options_.weight_dtype)},
          {"as_text_model", options_.as_text_model},
          {"max_shard_size", options_.max_shard_size}};
}

/// A working folder that nobody holds is the rest of a run that ended; it is continued when it is of the same conversion.
Result<huggingface::WriterOptions> ToHuggingface::writer_options() const {
  huggingface::WriterOptions out;
  out.max_shard_size = options_.max_shard_size;
  out.sync = options_.sync;
  const std::string working = options_.output + ".maxport-tmp", journal = join_path(working, kJournalName);
  MAXPORT_ASSIGN_OR_RETURN(const auto kind, storage_.kind(working));
  if (!kind) return out;
  MAXPORT_RETURN_IF_ERROR(storage_.lock(working));
  out.leftover = huggingface::Leftover::kReplace;
  MAXPORT_ASSIGN_OR_RETURN(const auto journal_kind, storage_.kind(journal));
  if (!journal_kind) return out;
  const auto same = Journal::resume(storage_, journal, identity(), false);
  if (same) out.leftover = huggingface::Leftover::kResume;
  if (!same && same.error().kind() == ErrorKind::kInvalidArgument && !options_.overwrite)
    return with_context(Result<huggingface::WriterOptions>(std::unexpected(same.error())), printable(working));
  return out;
}

Result<> ToHuggingface::copy_side_files(const std::string& folder, ToHuggingfaceReport& report) const {
  if (!options_.hf_folder) return {};
  MAXPORT_ASSIGN_OR_RETURN(const auto files, huggingface::find_side_files(storage_, *options_.hf_folder));
  for (const huggingface::SideFile& file : files) report.side_files.push_back(file.name);
  return huggingface::copy_side_files(storage_, files, storage_, folder);
}

void ToHuggingface::name_inexact(ToHuggingfaceReport& report) const {
  std::map<std::string, InexactStep> steps;
  const plan::Plan& plan = source_.plan();
  for (const plan::Leaf& leaf : plan.leaves) {
    if (is_exact(leaf.arithmetic)) continue;
    InexactStep& step = steps[leaf.arithmetic.name];
    step.step = leaf.arithmetic.name;
    step.bound = leaf.arithmetic.kind == models::Arithmetic::Kind::kAdd ? "2^-24" : "1 unit in the last place";
    for (const plan::Link& link : plan.links_of(leaf)) step.tensors.push_back(output_name(plan.tensors[link.tensor].name));
  }
  for (auto& [name, step] : steps) report.inexact.push_back(std::move(step));
}

Result<> ToHuggingface::set_aside(std::string& old) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto existing, storage_.kind(options_.output));
  if (!existing || !options_.overwrite) return {};
  old = options_.output + ".maxport-old";
  MAXPORT_RETURN_IF_ERROR(storage_.remove_all(old));
  return storage_.rename(options_.output, old);
}

Result<> ToHuggingface::fill(huggingface::ShardedWriter& writer, bool resume, ToHuggingfaceReport& report) {
  const std::string path = join_path(writer.working_folder(), kJournalName);
  MAXPORT_ASSIGN_OR_RETURN(const auto journal, resume ? Journal::resume(storage_, path, identity(), options_.sync)
                                                      : Journal::create(storage_, path, identity(), options_.sync));
  for (const engine::SegmentResult& segment : journal->take_finished()) {
    MAXPORT_RETURN_IF_ERROR(pipeline_->adopt(segment.record.index));
    ++report.segments_resumed;
  }
  engine::PipelineOptions options = pipeline_options();
  options.finished = [&](const engine::SegmentResult& segment) -> Result<> {
    if (options_.sync) MAXPORT_RETURN_IF_ERROR(writer.sync());
    return journal->append(segment);
  };
  SpecWriter target(writer, specs_of_);
  MAXPORT_RETURN_IF_ERROR(pipeline_->run(target, {&storage_, writer.working_folder()}, options));
  report.segments = pipeline_->segment_count();
  return storage_.remove_all(path);
}

Result<ToHuggingfaceReport> ToHuggingface::run() {
  const size_t slash = options_.output.find_last_of('/');
  const std::string parent = slash == std::string::npos ? "." : options_.output.substr(0, std::max<size_t>(slash, 1));
  const size_t open_files = ocdbt::kMaxOpenFiles + huggingface::WriterOptions().max_open_files;
  MAXPORT_RETURN_IF_ERROR(reserve_open_files(open_files + engine::open_files(options_.threads)));
  MAXPORT_RETURN_IF_ERROR(storage_.make_directories(parent));
  MAXPORT_ASSIGN_OR_RETURN(const auto free, storage_.free_bytes(parent));
  MAXPORT_ASSIGN_OR_RETURN(const huggingface::WriterOptions options, writer_options());
  const bool resume = options.leftover == huggingface::Leftover::kResume;
  const uint64_t needed = bytes() + pipeline_->scratch_bytes();
  if (free && *free < needed && !resume)
    return fail(ErrorKind::kResourceLimit, "the model needs {} MB, but {} has {} MB free", needed / 1'000'000,
                printable(parent), *free / 1'000'000);
  std::string old;
  MAXPORT_RETURN_IF_ERROR(set_aside(old));
  MAXPORT_ASSIGN_OR_RETURN(auto writer, huggingface::ShardedWriter::create(storage_, options_.output, specs_, options));
  MAXPORT_ASSIGN_OR_RETURN(const auto lock, storage_.lock(writer->working_folder()));
  ToHuggingfaceReport report;
  MAXPORT_RETURN_IF_ERROR(fill(*writer, resume, report));
  MAXPORT_RETURN_IF_ERROR(copy_side_files(writer->working_folder(), report));
  MAXPORT_RETURN_IF_ERROR(writer->publish(output_config()));
  if (!old.empty()) MAXPORT_RETURN_IF_ERROR(storage_.remove_all(old));
  report.folder = options_.output;
  report.tensors = specs_.size();
  report.files = writer->plan().files.size();
  report.bytes = bytes();
  name_inexact(report);
  return report;
}

}  // namespace maxport::convert
