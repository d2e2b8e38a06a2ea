#include "convert/leaf_tensor.h"

#include "tensor/cast.h"

namespace maxport::convert {
namespace {

class LeafTensor final : public orbax::LazyTensor {
 public:
  explicit LeafTensor(const engine::LeafReader& reader) : reader_(reader) {}

  const Shape& shape() const override { return reader_.shape(); }
  DType dtype() const override { return reader_.dtype(); }

  Result<> read(const Box& region, DType as, MutableByteSpan out) const override {
    MAXPORT_RETURN_IF_ERROR(check_read(region, as, out.size()));
    if (as == dtype()) return reader_.read(region, out);
    Bytes own(static_cast<size_t>(element_count(region.shape) * dtype_bytes(dtype())));
    MAXPORT_RETURN_IF_ERROR(reader_.read(region, own));
    cast(dtype(), own, as, out);
    return {};
  }

 private:
  engine::LeafReader reader_;
};

}  // namespace

std::shared_ptr<const orbax::LazyTensor> leaf_tensor(const engine::LeafReader& reader) {
  return std::make_shared<LeafTensor>(reader);
}

}  // namespace maxport::convert
