#include "forward/maxtext/checkpoint_weights.h"

#include "tensor/cast.h"
#include "tensor/dtype.h"

namespace maxport::forward {

Result<std::unique_ptr<CheckpointWeights>> CheckpointWeights::open(
    std::shared_ptr<const orbax::Checkpoint> checkpoint) {
  std::unique_ptr<CheckpointWeights> out(new CheckpointWeights());
  std::vector<maxtext::LeafPath> paths;
  std::vector<const orbax::CheckpointLeaf*> arrays;
  for (const orbax::CheckpointLeaf& leaf : checkpoint->leaves()) {
    if (leaf.kind != orbax::LeafKind::kArray) continue;
    maxtext::LeafPath& path = paths.emplace_back();
    for (const orbax::KeyPart& part : leaf.path) path.push_back(part.key);
    arrays.push_back(&leaf);
  }
  MAXPORT_ASSIGN_OR_RETURN(const maxtext::CanonicalTree tree, maxtext::canonical_tree(paths));
  for (const maxtext::CanonicalLeaf& leaf : tree.parameters)
    out->leaves_[leaf.name.substr(leaf.name.find('/') + 1)] = arrays[leaf.index];
  out->scan_layers_ = tree.scan_layers;
  out->checkpoint_ = std::move(checkpoint);
  return out;
}

Result<const orbax::CheckpointLeaf*> CheckpointWeights::find(std::string_view name) const {
  const auto found = leaves_.find(name);
  if (found == leaves_.end())
    return fail(ErrorKind::kNotFound, "the checkpoint has no parameter {}, which MaxText's model of these settings has",
                printable(name));
  return found->second;
}

bool CheckpointWeights::contains_prefix(std::string_view prefix) const {
  const auto next = leaves_.lower_bound(prefix);
  return next != leaves_.end() && next->first.starts_with(prefix);
}

Result<Shape> CheckpointWeights::shape(std::string_view name) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto* leaf, find(name));
  return leaf->shape;
}

Result<int64_t> CheckpointWeights::row_step(std::string_view name) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto* leaf, find(name));
  const Shape& chunk = leaf->array->spec().chunk_shape;
  return chunk.empty() ? 1 : std::max<int64_t>(chunk[0], 1);
}

Result<> CheckpointWeights::read(std::string_view name, const Box& box, std::span<float> out) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto* leaf, find(name));
  if (!is_floating(leaf->dtype) || dtype_info(leaf->dtype).bits < 16)
    return fail(ErrorKind::kUnsupported, "{}: a forward pass reads floating arrays of 16 bits or more, but it holds {}",
                printable(name), dtype_name(leaf->dtype));
  Bytes stored(out.size() * static_cast<size_t>(dtype_bytes(leaf->dtype)));
  MAXPORT_RETURN_IF_ERROR(leaf->array->read(box, stored));
  cast(leaf->dtype, stored, DType::kFloat32, std::as_writable_bytes(out));
  return {};
}

}  // namespace maxport::forward
