// The frame around manifests, B+tree nodes and version-tree nodes of an OCDBT database: pure functions of bytes.
//
//   | magic be32 | length le64 | version varint 0 | compression varint 0/1 | body | crc32c le32 |
//
// `length` counts the whole frame, the CRC covers everything before it as stored, and a compressed body is exactly one
// zstd frame (formats.md 1.1).
#pragma once

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace maxport::ocdbt {

inline constexpr uint32_t kManifestMagic = 0x0cdb3a2a;
inline constexpr uint32_t kBtreeNodeMagic = 0x0cdb20de;
inline constexpr uint32_t kVersionNodeMagic = 0x0cdb1234;

/// No body grows beyond this when it is decompressed; stock limits nodes to 100 MB decoded.
inline constexpr uint64_t kMaxBodyBytes = uint64_t{256} << 20;

/// `zstd_level` nothing stores the body plainly.
Result<Bytes> encode_frame(uint32_t magic, ByteSpan body, std::optional<int> zstd_level);

/// The body of a frame that fills `frame` exactly: a part of `frame`, or `keep` after decompression. Any deviation is
/// kCorruptData with an offset; the caller names the file. `what` is e.g. "B+tree node".
Result<ByteSpan> decode_frame(ByteSpan frame, uint32_t magic, std::string_view what, Bytes& keep,
                              uint64_t max_body_bytes = kMaxBodyBytes);

}  // namespace maxport::ocdbt
