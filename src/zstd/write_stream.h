// The kernels of writing literals, for the vectors that the processor has. Inner header of the room.
#pragma once

#include "zstd/stream_code.h"

namespace maxport::zstd {

struct MagnitudeRange {
  uint8_t lowest, highest;
};

/// Of the lower seven bits of the bytes, at least one: the uppermost is a sign in most kinds of weights.
MagnitudeRange magnitude_range(ByteSpan in);

/// Writes the codes of `in` from its end to its beginning, and the mark. Returns the end of the stream; up to 8 bytes beyond
/// it are written to.
std::byte* write_stream(ByteSpan in, const StreamCode& code, std::byte* out);

}  // namespace maxport::zstd
