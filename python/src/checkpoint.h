// Any checkpoint that maxport reads, as named lazy tensors: what `maxport.open` returns is built on this.
//
// Safe for any number of threads after open().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "orbax/lazy_tensor.h"
#include "storage/storage.h"

namespace maxport::python {

/// The place of a leaf in an Orbax tree: keys of dictionaries and indices of lists, outermost first.
using LeafPath = std::vector<std::variant<std::string, int64_t>>;

struct NamedTensor {
  std::shared_ptr<const orbax::LazyTensor> lazy;
  Shape granule;  ///< smallest block worth reading by itself: the chunk, or a single element
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  /// `path` is a safetensors file, a folder of them with or without config.json, or an Orbax checkpoint, step or item.
  /// `step` and `item` choose within the latter and are kInvalidArgument for the others.
  static Result<std::shared_ptr<Checkpoint>> open(Storage& storage, const std::string& path,
                                                  std::optional<int64_t> step, const std::optional<std::string>& item);

  std::string format;  ///< "safetensors", "huggingface" or "orbax"
  std::string path;    ///< what is read, after choosing step, item or snapshot
  std::map<std::string, NamedTensor> tensors;
  std::map<std::string, LeafPath> paths;       ///< of all leaves of an Orbax tree; nothing for the others
  std::map<std::string, std::string> texts;    ///< string leaves
  std::map<std::string, std::string> empties;  ///< empty containers: "Dict", "None", ...
  std::string metadata = "{}";                 ///< JSON: the file's, or the checkpoint's, own
  std::string config = "null";                 ///< JSON: config.json
  std::vector<std::string> notes;
};

}  // namespace maxport::python
