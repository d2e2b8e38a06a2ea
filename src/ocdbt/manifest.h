// The manifest of an OCDBT database: its settings and where the versions' roots lie (formats.md 1.2). Pure functions.
//
//   body: uuid 16 | manifest_kind u8 | max_inline_value_bytes varint | max_decoded_node_bytes varint
//         | version_tree_arity_log2 u8 | compression_method varint | zstd level le32, with method 1 only
//   and, unless the kind is 1: data file table | versions | version nodes
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "ocdbt/version_tree.h"

namespace maxport::ocdbt {

enum class ManifestKind : uint8_t {
  kSingle = 0,
  kNumbered = 1,  ///< settings only; the versions lie in manifest.<generation as 16 hex digits>
};

struct Config {
  std::array<std::byte, 16> uuid = {};
  ManifestKind manifest_kind = ManifestKind::kSingle;
  uint32_t max_inline_value_bytes = 1024;
  uint32_t max_decoded_node_bytes = 100'000'000;
  uint8_t version_tree_arity_log2 = 4;
  std::optional<int32_t> zstd_level = 0;  ///< nothing: nodes are stored plainly
  bool operator==(const Config&) const = default;
};

struct Manifest {
  Config config = {};
  std::vector<DataFile> files = {};  ///< what `versions` and `version_nodes` refer to
  std::vector<Version> versions = {};
  std::vector<VersionNodeReference> version_nodes = {};
  bool operator==(const Manifest&) const = default;
};

/// A whole manifest file.
Result<Bytes> encode_manifest(const Manifest& manifest);
Bytes encode_manifest_body(const Manifest& manifest);

/// Decodes a whole manifest file; kCorruptData with the offset for any deviation.
Result<Manifest> decode_manifest(ByteSpan file);
Result<Manifest> decode_manifest_body(ByteSpan body);

}  // namespace maxport::ocdbt
