// Reading a model folder back that was just written: the conversion is run once more, into a writer that compares.
#include <algorithm>

#include "convert/to_huggingface.h"
#include "huggingface/model_directory.h"

namespace maxport::convert {
namespace {

class Comparer final : public engine::TensorWriter {
 public:
  Comparer(const huggingface::ModelDirectory& model, const std::vector<safetensors::TensorSpec>& specs,
           const std::vector<std::vector<size_t>>& specs_of)
      : model_(model), specs_(specs), specs_of_(specs_of) {}

  Result<> write(uint32_t tensor, uint64_t byte_offset, ByteSpan bytes) override {
    Bytes stored(bytes.size());
    for (const size_t spec : specs_of_[tensor]) {
      const std::string& name = specs_[spec].name;
      MAXPORT_RETURN_IF_ERROR(model_.read(name, byte_offset, stored));
      const auto [mine, theirs] = std::ranges::mismatch(stored, bytes);
      if (mine != stored.end())
        return fail(ErrorKind::kCorruptData, "{} of {} is not what the checkpoint means: byte {} differs; convert again with --overwrite",
                    safetensors::quoted_name(name), printable(model_.folder()), byte_offset + static_cast<uint64_t>(mine - stored.begin()));
    }
    return {};
  }

 private:
  const huggingface::ModelDirectory& model_;
  const std::vector<safetensors::TensorSpec>& specs_;
  const std::vector<std::vector<size_t>>& specs_of_;
};

}  // namespace

Result<> ToHuggingface::check_output() const {
  MAXPORT_ASSIGN_OR_RETURN(const auto model, huggingface::ModelDirectory::open(storage_, options_.output));
  for (const safetensors::TensorSpec& spec : specs_) {
    MAXPORT_ASSIGN_OR_RETURN(const auto found, model->find(spec.name));
    if (found.info->dtype != spec.dtype || found.info->shape != spec.shape)
      return fail(ErrorKind::kCorruptData, "{} of {} is {}{}, written was {}{}", safetensors::quoted_name(spec.name), printable(model->folder()),
                  dtype_name(found.info->dtype), shape_text(found.info->shape), dtype_name(spec.dtype), shape_text(spec.shape));
  }
  if (model->tensors().size() != specs_.size())
    return fail(ErrorKind::kCorruptData, "{} holds {} tensors, written were {}", printable(model->folder()), model->tensors().size(), specs_.size());
  std::vector<DType> dtypes;
  for (size_t leaf = 0; leaf < source_.plan().leaves.size(); ++leaf) dtypes.push_back(exported_dtype(leaf));
  engine::ExportPipeline again(source_.plan(), source_.arrays(), std::move(dtypes));
  Comparer comparer(*model, specs_, specs_of_);
  const std::string scratch = options_.output + ".maxport-verify";
  MAXPORT_RETURN_IF_ERROR(storage_.make_directories(scratch));
  Result<> status = again.run(comparer, {&storage_, scratch}, pipeline_options());
  MAXPORT_RETURN_IF_ERROR(storage_.remove_all(scratch));
  return status;
}

}  // namespace maxport::convert
