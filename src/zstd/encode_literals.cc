#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "zstd/literals_tables.h"
#include "zstd/write_stream.h"

namespace maxport::zstd {
namespace {

/// A block is coded when that saves at least one byte of so many.
constexpr size_t kWorthwhile = 32;
/// A new code is told when it saves at least one bit of so many.
constexpr uint64_t kSaving = 200;

/// Bits of the counted bytes in this code; nothing when it lacks one of them.
std::optional<uint64_t> coded_bits(const Counts& counts, const HuffmanCode& code) {
  uint64_t bits = 0;
  for (size_t value = 0; value < 256; ++value) {
    if (counts[value] > 0 && code.bits[value] == 0) return std::nullopt;
    bits += uint64_t{counts[value]} * code.bits[value];
  }
  return bits;
}

void put(uint64_t value, size_t bytes, std::byte* out) {
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}

size_t write_block_header(BlockKind kind, bool last, size_t size, std::byte* out) {
  put(uint64_t{last} | static_cast<uint64_t>(kind) << 1 | size << 3, kBlockHeaderBytes, out);
  return kBlockHeaderBytes;
}

/// Makes the code and description of the tables suit `in`: those of the last block do when new ones would save next to
/// nothing. False when no code is worthwhile.
bool choose_code(ByteSpan in, LiteralsWorkspace::Tables& tables) {
  Counts counts = count_sample(in);
  if (!looks_uneven(counts)) return false;
  complete_counts(in, counts);
  const auto occurring = std::ranges::count_if(counts, [](uint32_t count) { return count > 0; });
  if (occurring < 2) return false;
  const StreamCode code = make_stream_code(counts);
  const uint64_t bits = *coded_bits(counts, code.huffman), counted = std::reduce(counts.begin(), counts.end(), uint64_t{0});
  if (bits * kWorthwhile > counted * 8 * (kWorthwhile - 1)) return false;
  const auto last = coded_bits(counts, tables.code.huffman);
  if (tables.code_description.size > 0 && last && *last - bits <= bits / kSaving) return true;
  tables.code = code;
  tables.code_description.size = write_code_description(code.huffman, tables.code_description.bytes);
  return tables.code_description.size > 0;
}

/// The content of a compressed block; 0 when it would not be worthwhile.
size_t write_compressed(ByteSpan in, LiteralsWorkspace::Tables& tables, MutableByteSpan out) {
  if (in.size() < kSmallestCoded || !choose_code(in, tables)) return 0;
  const ByteSpan description = tables.code_description.content();
  std::ranges::copy(description, out.begin() + kLiteralsHeaderBytes);
  const size_t sizes_at = kLiteralsHeaderBytes + description.size();
  size_t at = sizes_at + kJumpBytes, offset = 0;
  for (size_t stream = 0; stream < 4; ++stream) {
    const size_t count = stream_bytes(in.size(), stream);
    const std::byte* end = write_stream(in.subspan(offset, count), tables.code, tables.stream.data());
    const auto size = static_cast<size_t>(end - tables.stream.data());
    if (at + size + 1 >= in.size()) return 0;
    if (stream < 3) put(size, 2, out.data() + sizes_at + 2 * stream);
    std::memcpy(out.data() + at, tables.stream.data(), size);
    at += size;
    offset += count;
  }
  put(kFourStreams | uint64_t{in.size()} << 4 | uint64_t{at - kLiteralsHeaderBytes} << 22, kLiteralsHeaderBytes, out.data());
  out[at++] = std::byte{0};
  return at;
}

size_t write_block(ByteSpan in, bool last, LiteralsWorkspace::Tables& tables, MutableByteSpan out) {
  const MutableByteSpan content = out.subspan(kBlockHeaderBytes);
  const bool run = std::ranges::all_of(in, [&](std::byte value) { return value == in[0]; });
  if (run && in.size() > 1) {
    content[0] = in[0];
    return write_block_header(BlockKind::kRun, last, in.size(), out.data()) + 1;
  }
  if (const size_t size = write_compressed(in, tables, content); size > 0)
    return write_block_header(BlockKind::kCompressed, last, size, out.data()) + size;
  if (!in.empty()) std::memcpy(content.data(), in.data(), in.size());
  return write_block_header(BlockKind::kPlain, last, in.size(), out.data()) + in.size();
}

}  // namespace

LiteralsWorkspace::LiteralsWorkspace() : tables_(std::make_unique<Tables>()) {}
LiteralsWorkspace::~LiteralsWorkspace() = default;
LiteralsWorkspace::LiteralsWorkspace(LiteralsWorkspace&&) noexcept = default;
LiteralsWorkspace& LiteralsWorkspace::operator=(LiteralsWorkspace&&) noexcept = default;

void LiteralsWorkspace::forget() { tables_->code_description.size = 0; }

size_t literals_frame_bound(size_t bytes, size_t block_bytes) {
  return kFrameHeaderBytes + bytes + (bytes / std::min(block_bytes, kMaxBlockBytes) + 1) * kBlockHeaderBytes + kMaxDescriptionBytes;
}

size_t encode_literals_frame(ByteSpan in, size_t block_bytes, LiteralsWorkspace& workspace, MutableByteSpan out) {
  store_le(kMagic, out.data());
  out[4] = static_cast<std::byte>(kDescriptor);
  store_le(static_cast<uint32_t>(in.size()), out.data() + 5);
  size_t at = kFrameHeaderBytes, done = 0;
  do {
    const size_t size = std::min({block_bytes, kMaxBlockBytes, in.size() - done});
    at += write_block(in.subspan(done, size), done + size == in.size(), workspace.tables(), out.subspan(at));
    done += size;
  } while (done < in.size());
  return at;
}

}  // namespace maxport::zstd
