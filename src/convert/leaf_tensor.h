// A planned leaf as the lazy tensor that Orbax's leaf handlers take.
#pragma once

#include <memory>

#include "engine/leaf_reader.h"
#include "orbax/lazy_tensor.h"

namespace maxport::convert {

/// The plan and the tensors behind `reader` must outlive the result.
std::shared_ptr<const orbax::LazyTensor> leaf_tensor(const engine::LeafReader& reader);

}  // namespace maxport::convert
