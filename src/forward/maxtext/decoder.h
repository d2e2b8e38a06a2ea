// The decoder that most models of MaxText share, over MaxText's own parameter tree (layers/nnx_decoders.py,
// layers/attentions.py, layers/linears.py of MaxText 0.2.5). Settings come from MaxText's configuration, never from a
// config.json. A decoder block states in MaxtextTraits what its layer class has built in, or overrides a step.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "forward/attention.h"
#include "forward/decoder.h"
#include "forward/layers.h"
#include "forward/maxtext/checkpoint_weights.h"
#include "forward/rotary.h"
#include "maxtext/settings.h"

namespace maxport::forward {

/// Where one layer's parameters are: below `prefix`, at these indices of the stacked axes (outermost first).
struct LayerPlace {
  std::string prefix;
  std::vector<int64_t> indices = {};
};

/// What a layer class of MaxText has built in, apart from the settings.
struct MaxtextTraits {
  std::string_view attention = "self_attention";
  std::string_view mlp = "mlp";
  std::string_view norm_before_attention = "pre_self_attention_layer_norm";  ///< empty: there is none
  std::string_view norm_after_attention = {};
  std::string_view norm_before_mlp = "post_self_attention_layer_norm";
  std::string_view norm_after_mlp = {};
  double query_scale = 1;                         ///< 1: it is in the query's kernel
  double norm_offset = 0;                         ///< 1 where norms multiply by 1 + scale
  std::optional<double> layer_norm_epsilon = {};  ///< where the layer does not hand the setting on
  bool query_norm = false;                        ///< over as many columns as the scale has: a head, or all of them
  bool bias_qkv = false, bias_out = false;
  int64_t block = 1;  ///< layers of one scanned block; they are called layers_0, layers_1, ... in it
  /// True for a layer that sees a sliding window, by its index.
  bool (*local)(int64_t index) = nullptr;
};

struct MaxtextModel {
  std::shared_ptr<const CheckpointWeights> weights;
  std::shared_ptr<const maxtext::Settings> settings;
  bool scanned = true;
  bool round_tied_table = false;  ///< as MaxText does: the tied head multiplies with the table in bfloat16
};

class MaxtextDecoder : public Decoder {
 public:
  MaxtextDecoder(MaxtextModel model, MaxtextTraits traits);
  /// Reads what the steps need from the settings.
  virtual Result<> prepare();

  std::string description() const override;
  int64_t layers() const override { return layers_; }
  Result<Matrix> embed(const Batch& batch) override;
  Result<> layer(int64_t index, const Batch& batch, Matrix& x) override;
  Result<Matrix> head(Matrix x) override;

 protected:
  virtual LayerPlace place(int64_t index) const;
  /// The part of the layer between its norms and the sum; `h` is the (normed) input.
  virtual Result<Matrix> attention(int64_t index, const Batch& batch, Matrix h);
  virtual Result<Matrix> feed_forward(int64_t index, Matrix h);

  /// The layer's part of a parameter, without the stacked axes.
  Result<Tensor> parameter(const LayerPlace& place, std::string_view name) const;
  /// h kernel (+ bias) of the dense layer `name`. A kernel has `inputs` axes of inputs, the rest are outputs.
  Result<Matrix> dense(const LayerPlace& place, const std::string& name, const Matrix& h, int inputs = 1,
                       bool bias = false) const;
  /// wo(act(wi_0(h)) * wi_1(h)) of the block `name`.
  Result<Matrix> gated_mlp(const LayerPlace& place, const std::string& name, const Matrix& h) const;
  /// The norm `name` (without ".scale") with the layer's epsilon, or the one given.
  Result<> norm(const LayerPlace& place, const std::string& name, Matrix& x, std::optional<double> epsilon = {}) const;
  bool is_local(int64_t index) const { return traits_.local != nullptr && traits_.local(index); }

  MaxtextModel model_;
  MaxtextTraits traits_;
  const CheckpointWeights& weights_;
  const maxtext::Settings& settings_;
  int64_t layers_ = 0, width_ = 0, heads_ = 0, kv_heads_ = 0, head_dim_ = 0, window_ = 0, scan_axis_ = 1;
  double epsilon_ = 0, score_cap_ = 0, logit_cap_ = 0;
  bool tied_ = false, normalized_logits_ = false;
  Activation activation_ = Activation::kSilu;
  Rotary global_rotary_, local_rotary_;

 private:
  Result<> read_sizes();
  Result<> read_activation();
};

}  // namespace maxport::forward
