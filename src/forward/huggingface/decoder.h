// The decoder that most models of transformers share, over the tensors of a Hugging Face folder. A family sets what it
// does differently in HuggingfaceTraits; one whose attention or feed-forward network is of another kind overrides
// that step.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "forward/attention.h"
#include "forward/decoder.h"
#include "forward/huggingface/model_weights.h"
#include "forward/layers.h"
#include "forward/rotary.h"

namespace maxport::forward {

enum class QueryNorm { kNone, kHead, kAllHeads };

/// What modelling code of transformers has built in, apart from config.json.
struct HuggingfaceTraits {
  double norm_offset = 0;                                      ///< 1 where norms multiply by 1 + weight
  bool scaled_embedding = false;                               ///< embeddings are multiplied by sqrt(width)
  bool maxtext_rounds_scale = false;                           ///< MaxText's converter rounds that factor to bfloat16
  std::string_view norm_before_attention = "input_layernorm";  ///< empty: there is none
  std::string_view norm_after_attention = {};
  std::string_view norm_before_mlp = "post_attention_layernorm";
  std::string_view norm_after_mlp = {};
  QueryNorm query_norm = QueryNorm::kNone;
  bool bias_qkv = false, bias_out = false, bias_mlp = false;
  bool query_pre_attn_scalar = false;  ///< scores are divided by its root instead of head_dim's
  bool rope_by_layer_type = false;     ///< each layer type has a rope of its own
  bool sinks = false;                  ///< "self_attn.sinks" join the softmax
};

/// What a family's code is given.
struct HuggingfaceModel {
  std::shared_ptr<const huggingface::ModelDirectory> directory;
  const huggingface::ConfigRoles* config = nullptr;  ///< lives in the directory
  bool like_maxtext = false;  ///< round where MaxText does: a scaled embedding's factor, and the table of a tied head
};

class HuggingfaceDecoder : public Decoder {
 public:
  HuggingfaceDecoder(HuggingfaceModel model, HuggingfaceTraits traits);
  /// Reads what the steps need from the configuration. `layer_types` has one entry a layer, or none for full attention
  /// everywhere.
  virtual Result<> prepare(std::vector<std::string> layer_types);

  std::string description() const override;
  int64_t layers() const override { return layers_; }
  Result<Matrix> embed(const Batch& batch) override;
  Result<> layer(int64_t index, const Batch& batch, Matrix& x) override;
  Result<Matrix> head(Matrix x) override;

 protected:
  /// The part of the layer between its norms and the sum; `h` is the (normed) input.
  virtual Result<Matrix> attention(int64_t index, const Batch& batch, Matrix h);
  virtual Result<Matrix> feed_forward(int64_t index, Matrix h);

  /// "model.layers.3." + rest
  std::string layer_name(int64_t index, std::string_view rest) const;
  /// h W^T (+ b) of the linear layer `name`, without ".weight".
  Result<Matrix> linear(const std::string& name, const Matrix& h, bool bias = false) const;
  /// down(act(gate(h)) * up(h)) of the network at `prefix` ("model.layers.3.mlp.").
  Result<Matrix> gated_mlp(const std::string& prefix, const Matrix& h, bool bias = false) const;
  Result<> norm(const std::string& name, Matrix& x) const;
  /// The weights of a layer's one-dimensional tensor.
  Result<std::vector<float>> vector(const std::string& name) const;
  const std::string& layer_type(int64_t index) const { return layer_types_[static_cast<size_t>(index)]; }
  const Rotary& rotary(int64_t index) const {
    return rotaries_.at(traits_.rope_by_layer_type ? layer_type(index) : "");
  }

  HuggingfaceModel model_;
  HuggingfaceTraits traits_;
  ModelWeights weights_;
  const huggingface::ConfigRoles& config_;
  std::string prefix_;  ///< of the decoder's tensors: "model.", "model.language_model.", ...
  bool tied_ = false;
  std::string head_name_;  ///< the output head's tensor; the embedding's where they are tied
  std::vector<std::string> layer_types_;
  std::map<std::string, Rotary> rotaries_;  ///< by layer type, or one under ""
  int64_t layers_ = 0, width_ = 0, heads_ = 0, kv_heads_ = 0, head_dim_ = 0, window_ = 0;
  float embedding_scale_ = 1;
  double epsilon_ = 0, score_scale_ = 1, score_cap_ = 0, logit_cap_ = 0;
  Activation activation_ = Activation::kSilu;

 private:
  Result<> find_names();
};

}  // namespace maxport::forward
