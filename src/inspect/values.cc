#include "inspect/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "compare/jobs.h"
#include "convert/path_kind.h"
#include "huggingface/model_directory.h"
#include "orbax/checkpoint.h"
#include "tensor/cast.h"

namespace maxport::inspect {
namespace {

constexpr size_t kBlock = 4096, kCounters = 65536;

/// Readers by name, and what they read from.
struct Readers {
  std::unique_ptr<huggingface::ModelDirectory> model;
  std::unique_ptr<huggingface::ShardSet> file;
  std::unique_ptr<orbax::Checkpoint> checkpoint;
  std::map<std::string, std::unique_ptr<compare::WindowReader>, std::less<>> by_name;
};

void add_files(const huggingface::ShardSet& shards, Readers& out) {
  for (size_t i = 0; i < shards.shards().size(); ++i)
    for (const safetensors::TensorInfo& tensor : shards.shards()[i]->header.tensors)
      if (dtype_info(tensor.dtype).bits % 8 == 0) out.by_name[tensor.name] = compare::read_file_tensor(shards, i, tensor);
}

Result<Readers> open_readers(Storage& storage, const std::string& path) {
  Readers out;
  MAXPORT_ASSIGN_OR_RETURN(const convert::PathKind kind, convert::path_kind(storage, path));
  if (kind == convert::PathKind::kModelFolder) {
    MAXPORT_ASSIGN_OR_RETURN(out.model, huggingface::ModelDirectory::open(storage, path, {.metadata = safetensors::MetadataPolicy::kTolerate}));
    add_files(out.model->shards(), out);
  } else if (kind == convert::PathKind::kWeightFile) {
    out.file = std::make_unique<huggingface::ShardSet>(storage, 1);
    MAXPORT_RETURN_IF_ERROR(out.file->add(path, path, safetensors::MetadataPolicy::kTolerate));
    add_files(*out.file, out);
  } else {
    MAXPORT_ASSIGN_OR_RETURN(out.checkpoint, orbax::Checkpoint::open(storage, path, {.keep_damaged = true}));
    for (const orbax::CheckpointLeaf& leaf : out.checkpoint->leaves())
      if (leaf.array) out.by_name[leaf.name] = compare::read_array(*leaf.array);
  }
  std::erase_if(out.by_name, [](const auto& entry) { return !can_cast(entry.second->dtype(), DType::kFloat32); });
  return out;
}

class Counter {
 public:
  void add(DType dtype, ByteSpan bytes) {
    const auto element = static_cast<size_t>(dtype_bytes(dtype));
    alignas(64) float numbers[kBlock];
    for (size_t done = 0; done < bytes.size(); done += kBlock * element) {
      const ByteSpan part = bytes.subspan(done, std::min(kBlock * element, bytes.size() - done));
      const size_t count = part.size() / element;
      cast(dtype, part, DType::kFloat32, std::as_writable_bytes(std::span(numbers)).first(count * sizeof(float)));
      for (size_t i = 0; i < count; ++i) add(numbers[i]);
    }
  }

  Values finish() {
    if (finite_ == 0) return std::move(out_);
    const auto n = static_cast<double>(finite_);
    out_.mean = sum_ / n;
    out_.deviation = std::sqrt(std::max(0.0, squares_ / n - out_.mean * out_.mean));
    out_.bins.assign(kBins, 0);
    const double width = (out_.most - out_.least) / static_cast<double>(kBins);
    for (uint32_t i = 0; i < kCounters; ++i) {
      if (counts_[i] == 0) continue;
      const double value = std::clamp<double>(std::bit_cast<float>(i << 16), out_.least, out_.most);
      const double bin = width > 0 ? (value - out_.least) / width : 0;
      out_.bins[std::min(kBins - 1, static_cast<size_t>(bin))] += counts_[i];
    }
    return std::move(out_);
  }

 private:
  void add(float x) {
    ++out_.read;
    if (std::isnan(x)) {
      ++out_.nans;
    } else if (std::isinf(x)) {
      ++out_.infinities;
    } else {
      const double value = x;
      out_.zeros += x == 0;
      out_.least = finite_ == 0 ? value : std::min(out_.least, value);
      out_.most = finite_ == 0 ? value : std::max(out_.most, value);
      ++finite_;
      sum_ += value;
      squares_ += value * value;
      ++counts_[std::bit_cast<uint32_t>(x) >> 16];
    }
  }

  Values out_;
  std::vector<uint64_t> counts_ = std::vector<uint64_t>(kCounters);
  uint64_t finite_ = 0;
  double sum_ = 0, squares_ = 0;
};

Result<Values> values_of(const compare::WindowReader& reader, const ValueOptions& options, compare::Workspace& workspace) {
  const Shape window = compare::window_shape({&reader, true, {}, 0});
  const Shape& shape = reader.shape();
  Shape counts;
  for (size_t axis = 0; axis < shape.size(); ++axis) counts.push_back((shape[axis] + window[axis] - 1) / window[axis]);
  Counter counter;
  uint64_t read = 0;
  for (int64_t n = 0; n < element_count(counts); ++n) {
    if (options.cancelled && options.cancelled()) return fail(ErrorKind::kInterrupted, "stopped");
    if (options.sample && read >= *options.sample) break;
    Box box = Box::whole(shape);
    int64_t rest = n;
    for (size_t axis = shape.size(); axis-- > 0;) {
      box.origin[axis] = rest % counts[axis] * window[axis];
      box.shape[axis] = std::min(window[axis], shape[axis] - box.origin[axis]);
      rest /= counts[axis];
    }
    workspace.a.resize(static_cast<size_t>(element_count(box.shape) * dtype_bytes(reader.dtype())));
    MAXPORT_RETURN_IF_ERROR(reader.read(box, workspace.a, workspace));
    counter.add(reader.dtype(), workspace.a);
    read += static_cast<uint64_t>(element_count(box.shape));
  }
  return counter.finish();
}

}  // namespace

Result<std::vector<std::optional<Values>>> read_values(Storage& storage, const std::string& path, const Inspection& inspection,
                                                       const ValueOptions& options) {
  MAXPORT_ASSIGN_OR_RETURN(const Readers readers, open_readers(storage, path));
  std::vector<std::optional<Values>> out(inspection.tensors.size());
  compare::Workspace workspace;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto reader = readers.by_name.find(inspection.tensors[i].name);
    if (reader == readers.by_name.end()) continue;
    Result<Values> values = values_of(*reader->second, options, workspace);
    if (!values && values.error().kind() == ErrorKind::kInterrupted) return std::unexpected(std::move(values).error());
    out[i] = values ? std::move(*values) : Values{};
    if (!values) out[i]->problem = values.error().message();
  }
  return out;
}

}  // namespace maxport::inspect
