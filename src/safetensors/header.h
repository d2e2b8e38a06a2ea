// The safetensors header: 8 bytes of little-endian length, then that many bytes of JSON, then the data.
//
//   offset 0          8                    8 + length                              file size
//          | length   | {"name": {...}, …} | tensor bytes, dense, in offset order  |
//
// An entry is {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]} with offsets relative to the end of the
// JSON; "__metadata__" may hold a flat map of strings. Parsing is pure, and stricter than the reference library where
// two readers could see two models: a name occurs once. Every byte of the data belongs to exactly one tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace maxport::safetensors {

/// The format's own limit on the JSON, shared with the reference library.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
/// Objects and arrays may nest this deep inside fields that this reader does not know.
inline constexpr int kMaxHeaderDepth = 128;
/// The one key that is not a tensor.
inline constexpr std::string_view kMetadataKey = "__metadata__";

struct TensorInfo {
  std::string name;  ///< any text, also the empty one; never a path
  DType dtype = DType::kFloat32;
  Shape shape;
  uint64_t begin = 0;  ///< absolute byte range in the file
  uint64_t end = 0;

  uint64_t byte_size() const { return end - begin; }
};

struct Header {
  std::vector<TensorInfo> tensors;              ///< in the order of their bytes
  std::vector<uint32_t> by_name;                ///< indices into `tensors`, sorted by name
  std::map<std::string, std::string> metadata;  ///< of "__metadata__"
  std::vector<std::string> notes;               ///< what was odd but harmless, e.g. fields this reader does not know

  /// The tensor of that name, or null.
  const TensorInfo* find(std::string_view name) const;
};

enum class MetadataPolicy {
  kStrict,    ///< anything but a map of strings is an error, as in the reference library
  kTolerate,  ///< for listing damaged files: what is wrong with "__metadata__" becomes a note
};

/// Parses the JSON part of a file of `file_size` bytes and checks every rule of the format against that size. `what`
/// names the file in messages. Fails with kCorruptData, or kResourceLimit above a documented cap. Takes memory in
/// proportion to the header.
Result<Header> parse_header(ByteSpan header_json, uint64_t file_size, std::string_view what,
                            MetadataPolicy policy = MetadataPolicy::kStrict);

/// Packed size of a tensor in bytes; kInvalidArgument when it overflows or is not a whole number of bytes, and
/// kUnsupported when the format has no such type.
Result<uint64_t> tensor_byte_size(DType dtype, std::span<const int64_t> shape);

/// A tensor name for messages: quoted, printable, cut when very long.
std::string quoted_name(std::string_view name);

}  // namespace maxport::safetensors
