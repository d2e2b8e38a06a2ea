// The parameters of a MaxText checkpoint as weights. Names are those of MaxText's parameter tree below the collection:
// "decoder.layers.mlp.wi_0.kernel". Trees of Linen and NNX read alike (maxtext/tree_layout.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "forward/weights.h"
#include "maxtext/tree_layout.h"
#include "orbax/checkpoint.h"

namespace maxport::forward {

class CheckpointWeights : public Weights {
 public:
  static Result<std::unique_ptr<CheckpointWeights>> open(std::shared_ptr<const orbax::Checkpoint> checkpoint);

  bool contains(std::string_view name) const override { return leaves_.contains(name); }
  Result<Shape> shape(std::string_view name) const override;
  Result<> read(std::string_view name, const Box& box, std::span<float> out) const override;
  Result<int64_t> row_step(std::string_view name) const override;

  const orbax::Checkpoint& checkpoint() const { return *checkpoint_; }
  /// True: layers are stacked. False: they are numbered. Nothing when there are none.
  std::optional<bool> scan_layers() const { return scan_layers_; }
  /// True when any parameter's name begins so.
  bool contains_prefix(std::string_view prefix) const;

 private:
  CheckpointWeights() = default;
  Result<const orbax::CheckpointLeaf*> find(std::string_view name) const;

  std::shared_ptr<const orbax::Checkpoint> checkpoint_;
  std::map<std::string, const orbax::CheckpointLeaf*, std::less<>> leaves_;
  std::optional<bool> scan_layers_;
};

}  // namespace maxport::forward
