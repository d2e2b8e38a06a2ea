// Inner header of the room: what writer and reader of literals share.
#pragma once

#include "zstd/code_description.h"
#include "zstd/literals_frame.h"
#include "zstd/read_streams.h"
#include "zstd/stream_code.h"

namespace maxport::zstd {

inline constexpr uint32_t kMagic = 0xFD2FB528;
/// Single segment, no checksum, no dictionary, content size in 4 bytes.
inline constexpr uint8_t kDescriptor = 0xA0;
inline constexpr size_t kFrameHeaderBytes = 9, kBlockHeaderBytes = 3, kLiteralsHeaderBytes = 5, kJumpBytes = 6;
/// A block of fewer bytes is not worth a description.
inline constexpr size_t kSmallestCoded = 256;
/// The most that a block may hold.
inline constexpr size_t kMaxBlockBytes = size_t{128} << 10;

enum class BlockKind : uint32_t { kPlain = 0, kRun = 1, kCompressed = 2 };

/// Literals that are Huffman coded by a code told with them, in four streams, both sizes in 18 bits.
inline constexpr uint64_t kFourStreams = 2 | 3 << 2;

/// A description of `size` bytes; of none before the first.
struct Description {
  size_t size = 0;
  std::array<std::byte, kMaxDescriptionBytes> bytes;

  ByteSpan content() const { return ByteSpan(bytes).first(size); }
};

struct LiteralsWorkspace::Tables {
  /// The code of the block written last.
  StreamCode code;
  Description code_description;
  /// For reading by the code that the description tells.
  ReadTable read;
  Description read_description;
  /// A stream with its longest codes.
  std::array<std::byte, kMaxBlockBytes / 4 * kMaxCodeBits / 8 + 64> stream;
};

/// How many bytes each of the four streams stands for; the last has what is left.
constexpr size_t stream_bytes(size_t block, size_t stream) {
  const size_t each = (block + 3) / 4;
  return stream < 3 ? each : block - 3 * each;
}

}  // namespace maxport::zstd
