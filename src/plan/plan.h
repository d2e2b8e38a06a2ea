// A conversion plan: for every element of the target, which element of which source it is and what arithmetic is done
// on the way. Complete before the first weight is read, plain data, no I/O.
//
// A plan is a set of links between Hugging Face tensors and MaxText leaves. Each link is one strided walk: for every
// position of `extents`, element huggingface_offset + sum(i * huggingface_strides) of the tensor and element
// maxtext_offset + sum(i * maxtext_strides) of the leaf are the same number up to the leaf's arithmetic. Transposing,
// stacking, splitting, interleaving and padding are all only strides, and a link reads the same both ways.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/parameter_map.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace maxport::plan {

enum class Direction { kToMaxText, kToHuggingFace };

/// Shared by all links of one rule, e.g. all layers and experts. Strides and extents are in elements.
struct Walk {
  Shape extents;  ///< outermost first, in the order of the MaxText side
  std::vector<int64_t> huggingface_strides;
  std::vector<int64_t> maxtext_strides;
};

struct Link {
  uint32_t tensor;  ///< index into Plan::tensors
  uint32_t leaf;    ///< index into Plan::leaves
  uint32_t walk;    ///< index into Plan::walks
  int64_t huggingface_offset;
  int64_t maxtext_offset;
};

/// One Hugging Face tensor as the parameter map expects it.
struct Tensor {
  std::string name;
  Shape shape;
  std::string drops;            ///< why some of its elements have no place in MaxText; empty when all must have one
  uint32_t rule = 0, part = 0;  ///< of the map: the first that names it
};

/// One MaxText parameter.
struct Leaf {
  std::string collection;  ///< "params", "MoEBiasVar", ...
  std::string path;        ///< below the collection, joined with '.'
  Shape shape;
  std::vector<int> stack_axes;  ///< axes along which layers are stacked
  models::Arithmetic arithmetic;
  std::optional<float> fill;  ///< value of elements without a link; nothing when every element must have one
  uint32_t first_link = 0;    ///< its links are Plan::links[first_link .. first_link + link_count)
  uint32_t link_count = 0;

  /// "params.params.<path>": how MaxText spells the whole key in a checkpoint.
  std::string checkpoint_name() const { return "params." + collection + "." + path; }
};

struct Plan {
  std::vector<Tensor> tensors;
  std::vector<Leaf> leaves;  ///< in the order of the rules
  std::vector<Walk> walks;
  std::vector<Link> links;  ///< grouped by leaf

  std::span<const Link> links_of(const Leaf& leaf) const {
    return std::span(links).subspan(leaf.first_link, leaf.link_count);
  }
  /// For each tensor the indices of its links, ascending; the other way to walk the same plan.
  std::vector<std::vector<uint32_t>> links_by_tensor() const;
};

/// Expands the rules of a parameter map. Fails with kInternal when a rule contradicts itself (an index without a place,
/// two rules that name one leaf, two shapes for one tensor).
Result<Plan> build(const models::ParameterMap& map);

/// The dtype a leaf gets from a source tensor (hooks.md 1.1): `save_dtype` float32 or bfloat16 converts everything;
/// float8_e4m3fn leaves float32, bfloat16 and float8 as they are and widens the rest to float32.
DType stored_dtype(DType source, DType save_dtype, const models::Arithmetic& arithmetic);

}  // namespace maxport::plan
