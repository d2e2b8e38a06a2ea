// How the axes of a Hugging Face tensor become the axes of a MaxText tensor, as one line of text.
//
//   "(heads dim) emb -> emb heads dim"          split rows into heads, then transpose
//   "(heads 2 half) emb -> emb heads (half 2)"  the same, and interleave the two rotary halves
//   "(@1/2 mlp) emb -> emb mlp"                 the second half of a fused gate-up projection
//   "vocab emb -> vocab@0/padded_vocab emb"     a table with unused rows at the end
//
// Left of the arrow stand the axes of the Hugging Face tensor, right of it those of one MaxText slice. A name is an
// index that runs over its size (see Dimensions); a number is an index of its own of that size, the same on both sides;
// "(a b)" is one axis made of a and b, b varying fastest; "x@offset/total" is the range of an axis of `total` that
// begins at `offset`; "@k/n" is the single position k of n. Offsets and totals are names or numbers. Every index occurs
// at most once on each side. The notation follows einops, with ranges added.
//
// A pattern says where elements go and nothing else, so it reads the same in both directions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/shape.h"

namespace maxport::models {

/// Sizes of the named indices of one model.
class Dimensions {
 public:
  /// `role` says in messages where the size comes from, e.g. "head_dim" or "head_dim / 2".
  void set(std::string name, int64_t size, std::string_view role = {}) {
    if (!role.empty()) roles_[name] = role;
    sizes_[std::move(name)] = size;
  }
  /// "(heads dim) emb with heads = 32 (num_attention_heads), ...": the named sizes of one side of a pattern.
  std::string explain(std::string_view side) const;
  /// kInternal when the family never set it: a rule names an index its family does not define.
  Result<int64_t> get(std::string_view name) const;
  const std::map<std::string, int64_t, std::less<>>& all() const { return sizes_; }

 private:
  std::map<std::string, int64_t, std::less<>> sizes_;
  std::map<std::string, std::string, std::less<>> roles_;
};

/// One named index and the step, in positions along the axis or in elements, that it makes.
struct Term {
  int index;
  int64_t stride;
};

/// One axis: position = offset + sum of index * stride, below `extent`.
struct AxisForm {
  std::vector<Term> terms;
  int64_t offset = 0;
  int64_t extent = 1;
};

struct TensorForm {
  std::vector<AxisForm> axes;
  Shape shape() const;
};

/// A parsed pattern for one model's dimensions.
struct Pattern {
  std::vector<std::string> names;  ///< of the indices; numbers keep their text
  std::vector<int64_t> sizes;      ///< of the indices
  TensorForm huggingface;
  TensorForm maxtext;
  /// Position of a named index, or -1.
  int find(std::string_view name) const;
};

/// Parses one side and adds its indices to `names` and `sizes` when they are new.
Result<Pattern> parse_pattern(std::string_view text, const Dimensions& dimensions);

}  // namespace maxport::models
