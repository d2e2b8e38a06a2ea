#include "planned_model.h"

#include <cstdlib>

#include "convert/leaf_tensor.h"
#include "convert/model_source.h"
#include "engine/grid.h"
#include "maxtext/arguments.h"
#include "maxtext/tree_layout.h"

extern char** environ;

namespace maxport::python {
namespace {

maxtext::SettingsRequest settings_request(const maxtext::ConversionArguments& arguments) {
  maxtext::SettingsRequest request{arguments.base_file, arguments.overrides, {}};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      request.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return request;
}

/// The box of a leaf that one sequential read of its source makes.
Shape granule_of(const plan::Plan& plan, const plan::Leaf& leaf, DType dtype) {
  const engine::ChunkGrid grid = engine::choose_grid(plan, leaf, dtype_bytes(dtype), -1, 1);
  Shape granule = grid.chunk_shape;
  if (grid.band_axis >= 0) granule[static_cast<size_t>(grid.band_axis)] = leaf.shape[static_cast<size_t>(grid.band_axis)];
  return granule;
}

class OpenedModel final : public PlannedModel {
 public:
  explicit OpenedModel(std::unique_ptr<convert::ModelSource> source) : source_(std::move(source)) {}

  Result<> describe(DType save_dtype) {
    const plan::Plan& steps = source_->plan();
    format = "maxtext plan";
    path = source_->directory().folder();
    config = source_->directory().config().dump();
    family = source_->identity().family->name;
    account = plan::to_json(source_->account()).dump();
    plan = plan::to_json(steps, false).dump();
    notes = source_->map().notes;
    for (const plan::Leaf& leaf : steps.leaves) {
      MAXPORT_ASSIGN_OR_RETURN(auto reader, engine::LeafReader::create(steps, leaf, *source_, save_dtype));
      const Shape granule = granule_of(steps, leaf, reader.dtype());
      const std::string name = leaf.checkpoint_name();
      tensors.emplace(name, NamedTensor{convert::leaf_tensor(reader), granule});
      LeafPath& keys = paths[name];
      for (std::string& key : maxtext::linen_path(leaf.collection + "/" + leaf.path)) keys.emplace_back(std::move(key));
    }
    return {};
  }

 private:
  std::unique_ptr<convert::ModelSource> source_;
};

}  // namespace

Result<std::shared_ptr<PlannedModel>> PlannedModel::open(Storage& storage, const std::vector<std::string>& words) {
  MAXPORT_ASSIGN_OR_RETURN(const auto arguments, maxtext::parse_conversion_arguments(
                                                     maxtext::ConversionCommand::kToMaxtext, words, {}));
  if (!arguments.hf_model_path)
    return fail(ErrorKind::kInvalidArgument, "planning: hf_model_path is missing: the folder of the Hugging Face model");
  MAXPORT_ASSIGN_OR_RETURN(const auto settings, maxtext::Settings::load(storage, settings_request(arguments)));
  MAXPORT_ASSIGN_OR_RETURN(auto source, convert::ModelSource::open(storage, {.folder = *arguments.hf_model_path}, settings));
  if (!source->account().good()) return std::unexpected(plan::to_error(source->account()));
  const auto save_dtype = dtype_from_name(arguments.save_dtype);
  if (!save_dtype)
    return fail(ErrorKind::kInvalidArgument, "planning: there is no save_dtype {}", printable(arguments.save_dtype));
  auto model = std::make_shared<OpenedModel>(std::move(source));
  MAXPORT_RETURN_IF_ERROR(model->describe(*save_dtype));
  return model;
}

}  // namespace maxport::python
