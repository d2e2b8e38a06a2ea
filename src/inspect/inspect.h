// What is at a path: the tensors of a model folder, a safetensors file or an Orbax checkpoint, how they are stored, and
// which model they are of. Reads headers and metadata only, never elements, and needs no devices.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "storage/storage.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace maxport::inspect {

/// How an array of a checkpoint is cut and coded.
struct Chunks {
  Shape shape;          ///< of one chunk, in elements
  uint64_t count = 0;   ///< in the grid
  uint64_t stored = 0;  ///< that are there
  std::string codecs;   ///< "bytes, blosc lz4, crc32c"
};

struct Tensor {
  std::string name;
  std::string type;                ///< element type; of leaves without elements what was recorded: "string", "Dict"
  std::optional<Shape> shape;      ///< nothing for leaves without elements
  uint64_t bytes = 0;              ///< of the elements
  uint64_t stored = 0;             ///< in the files, after compression
  std::string value_type;          ///< of checkpoints: "np.ndarray", "jax.Array", "scalar", ...
  std::optional<Chunks> chunks;    ///< of checkpoints
  std::string place;               ///< of models: the file
  std::string value;               ///< of scalars and strings
  std::string problem;             ///< why it cannot be read; empty when it can
};

/// One fact of a configuration by its role, and which field, formula or default says so.
struct Role {
  std::string name;
  OrderedJson value;
  std::string source;
};

struct Inspection {
  std::string path;                ///< what was read: the item, the snapshot
  std::string kind;                ///< "Hugging Face model", "safetensors file", "Orbax checkpoint"
  std::string family;              ///< "llama"; empty when it is not known
  std::string family_title;        ///< "Llama 3.1"
  std::string layout;              ///< of checkpoints of MaxText: "Linen, scanned"
  std::string storage;             ///< "OCDBT, Zarr v3", "3 files"
  std::string config_source;       ///< where the roles come from
  std::vector<Role> roles;
  std::map<std::string, std::string> facts;  ///< step, items, handler, metadata of files
  std::vector<Tensor> tensors;     ///< sorted by name
  std::vector<std::string> notes;

  uint64_t bytes() const;
  uint64_t stored() const;
};

/// Fails when there is nothing that could be listed; what is odd or damaged beside that becomes a note or a problem.
Result<Inspection> inspect(Storage& storage, const std::string& path);

}  // namespace maxport::inspect
