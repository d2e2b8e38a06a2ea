#include <algorithm>
#include <cstring>

#include "zstd/literals_tables.h"

namespace maxport::zstd {
namespace {

uint64_t number(ByteSpan in, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(in[at + i]) << (8 * i);
  return value;
}

/// The code that `in` begins with, in the tables; those of the last block serve when it is told in the same words.
/// Returns the size of its description, 0 when it is damaged.
size_t take_code(ByteSpan in, LiteralsWorkspace::Tables& tables) {
  Description& description = tables.read_description;
  if (description.size > 0 && in.size() >= description.size && std::ranges::equal(description.content(), in.first(description.size)))
    return description.size;
  size_t used = 0;
  const auto code = read_code_description(in, used);
  if (!code || used > kMaxDescriptionBytes) return 0;
  fill_read_table(*code, tables.read);
  std::memcpy(description.bytes.data(), in.data(), used);
  return description.size = used;
}

/// The content of a compressed block that makes out.size() bytes at most. Returns how many, 0 when it is not ours.
size_t read_compressed(ByteSpan in, LiteralsWorkspace::Tables& tables, MutableByteSpan out) {
  if (in.size() < kLiteralsHeaderBytes + 1) return 0;
  const uint64_t header = number(in, 0, kLiteralsHeaderBytes);
  const size_t bytes = header >> 4 & 0x3FFFF, coded = header >> 22 & 0x3FFFF;
  if ((header & 15) != kFourStreams || bytes > std::min(out.size(), kMaxBlockBytes) || bytes < kSmallestCoded) return 0;
  // Nothing but the number of sequences follows, which is 0.
  if (in.size() != kLiteralsHeaderBytes + coded + 1 || in.back() != std::byte{0}) return 0;
  in = in.subspan(kLiteralsHeaderBytes, coded);
  const size_t description = take_code(in, tables);
  if (description == 0 || in.size() - description < kJumpBytes) return 0;
  ByteSpan coded_streams = in.subspan(description + kJumpBytes);
  std::array<Stream, 4> streams;
  for (size_t i = 0, offset = 0; i < 4; ++i) {
    const size_t size = i < 3 ? number(in, description + 2 * i, 2) : coded_streams.size();
    if (size > coded_streams.size()) return 0;
    const size_t count = stream_bytes(bytes, i);
    streams[i] = {coded_streams.first(size), out.subspan(offset, count)};
    coded_streams = coded_streams.subspan(size);
    offset += count;
  }
  return read_streams(streams, tables.read) ? bytes : 0;
}

}  // namespace

bool decode_literals_frame(ByteSpan frame, LiteralsWorkspace& workspace, MutableByteSpan out) {
  if (frame.size() < kFrameHeaderBytes || load_le<uint32_t>(frame.data()) != kMagic ||
      frame[4] != static_cast<std::byte>(kDescriptor) || load_le<uint32_t>(frame.data() + 5) != out.size())
    return false;
  size_t at = kFrameHeaderBytes, done = 0;
  for (bool last = false; !last;) {
    if (frame.size() - at < kBlockHeaderBytes) return false;
    const uint64_t header = number(frame, at, kBlockHeaderBytes);
    at += kBlockHeaderBytes;
    last = header & 1;
    const auto kind = static_cast<BlockKind>(header >> 1 & 3);
    const size_t size = header >> 3, stored = kind == BlockKind::kRun ? 1 : size;
    if (frame.size() - at < stored || size > kMaxBlockBytes) return false;
    const ByteSpan content = frame.subspan(at, stored);
    const MutableByteSpan rest = out.subspan(done);
    at += stored;
    if (kind == BlockKind::kCompressed) {
      const size_t bytes = read_compressed(content, workspace.tables(), rest);
      if (bytes == 0) return false;
      done += bytes;
      continue;
    }
    if (kind > BlockKind::kRun || size > rest.size()) return false;
    if (kind == BlockKind::kRun) std::memset(rest.data(), static_cast<int>(content[0]), size);
    else if (size > 0) std::memcpy(rest.data(), content.data(), size);
    done += size;
  }
  return done == out.size() && at == frame.size();
}

}  // namespace maxport::zstd
