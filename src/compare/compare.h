// How far two models are from each other, tensor by tensor, whatever form each is stored in.
//
//   Hugging Face with Hugging Face   by tensor name
//   MaxText with MaxText             by parameter name (layouts of the tree, storage and chunks may differ)
//   MaxText scanned with unscanned   what the parameter map says is one Hugging Face tensor, as stored on both sides;
//                                    parameters that have one name on both sides whole, with their padding
//   Hugging Face with MaxText        by parameter name: each parameter is derived from the Hugging Face tensors exactly
//                                    as a conversion derives it, so that lossy steps (query scale, norm shift) compare equal
//
// Elements are read in windows; memory does not depend on the size of a tensor, but on the largest stored chunk.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/statistics.h"
#include "convert/path_kind.h"
#include "maxtext/settings.h"
#include "tensor/shape.h"

namespace maxport::compare {

enum class Status { kEqual, kWithinTolerance, kDifferent, kOtherDtype, kOtherShape, kOnlyInA, kOnlyInB };

std::string_view status_name(Status status);

/// A Hugging Face side of a parameter has the type and shape that a conversion to the model's own type would give it.
struct TensorSide {
  DType dtype = DType::kFloat32;
  Shape shape;
};

/// Where the first differing element is.
struct Place {
  std::vector<int64_t> index;        ///< within `tensor`
  std::string tensor;                ///< the parameter or Hugging Face tensor that was walked
  std::vector<int64_t> hf_index;     ///< the same element within `hf_tensor`
  std::string hf_tensor;             ///< empty where no Hugging Face tensor has the element, or it is `tensor`
};

struct TensorComparison {
  std::string name;
  Status status = Status::kEqual;
  std::optional<TensorSide> a, b;         ///< absent where it is only on the other side
  bool compared = false;                  ///< the elements were; `statistics` counts
  Statistics statistics;
  std::optional<Place> first;
};

struct Report {
  std::string a, b;            ///< as described: "MaxText, scanned"
  std::string how;             ///< what was compared with what, one sentence
  double tolerance = 0;
  std::vector<TensorComparison> tensors;  ///< sorted by name
  std::vector<std::string> notes;

  /// Every tensor is equal or within the tolerance. Other dtypes count as differences unless they are ignored.
  bool equal(bool ignore_dtypes = false) const;
  size_t count(Status status) const;
};

struct Options {
  double tolerance = 0;  ///< most that |a - b| may be; 0 asks for equal bits
  int threads = 1;
  /// Whose config.json describes the model, where neither side says it.
  std::optional<std::string> hf_folder = {};
  /// Settings that decide the layout (use_multimodal, mtp_num_layers, model_name, ...).
  std::vector<maxtext::Override> settings = {};
  std::function<bool()> cancelled = {};
  /// Told how many bytes will be read of one side, when both are open and reading begins.
  std::function<void(uint64_t bytes)> started = {};
  std::atomic<uint64_t>* bytes_done = nullptr;
};

/// Reads both sides. Fails when one cannot be read; that they differ is no failure.
Result<Report> compare(Storage& storage, const std::string& a, const std::string& b, const Options& options);

}  // namespace maxport::compare
