#include "forward/huggingface/model_weights.h"

#include "tensor/cast.h"

namespace maxport::forward {

Result<Shape> ModelWeights::shape(std::string_view name) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto entry, directory_->find(name));
  return entry.info->shape;
}

Result<> ModelWeights::read(std::string_view name, const Box& box, std::span<float> out) const {
  MAXPORT_ASSIGN_OR_RETURN(const auto entry, directory_->find(name));
  const DType dtype = entry.info->dtype;
  if (!is_floating(dtype) || dtype_info(dtype).bits < 16)
    return fail(ErrorKind::kUnsupported,
                "{}: a forward pass reads floating tensors of 16 bits or more, but it holds {}", printable(name),
                dtype_name(dtype));
  MAXPORT_CHECK(maxport::contains(entry.info->shape, box) &&
                element_count(box.shape) == static_cast<int64_t>(out.size()));
  if (out.empty()) return {};
  // Axes from `inner` on are whole: one run of bytes for each index of those before.
  const std::vector<int64_t> strides = row_major_strides(entry.info->shape);
  size_t inner = box.shape.size();
  while (inner > 0 && box.shape[inner - 1] == entry.info->shape[inner - 1]) --inner;
  if (inner > 0) --inner;
  int64_t run = 1;
  for (size_t axis = inner; axis < box.shape.size(); ++axis) run *= box.shape[axis];
  const auto bytes = static_cast<size_t>(run * dtype_bytes(dtype));
  std::vector<std::byte> buffer(bytes);
  std::vector<int64_t> at(inner, 0);
  for (size_t done = 0; done < out.size(); done += static_cast<size_t>(run)) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < box.shape.size(); ++axis)
      offset += (box.origin[axis] + (axis < inner ? at[axis] : 0)) * strides[axis];
    MAXPORT_RETURN_IF_ERROR(directory_->read(entry, static_cast<uint64_t>(offset * dtype_bytes(dtype)), buffer));
    cast(dtype, buffer, DType::kFloat32, std::as_writable_bytes(out.subspan(done, static_cast<size_t>(run))));
    for (size_t axis = inner; axis-- > 0;) {
      if (++at[axis] < box.shape[axis]) break;
      at[axis] = 0;
    }
  }
  return {};
}

}  // namespace maxport::forward
