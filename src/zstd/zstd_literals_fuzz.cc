// Any bytes as a Zstandard frame: what the reader of literals takes, the library reads alike. And any bytes as literals: they
// come back from both. The first byte chooses the direction and a size of blocks.
#include <zstd.h>

#include <cstdlib>

#include "zstd/literals_frame.h"

namespace {

using maxport::Bytes;
using maxport::ByteSpan;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_any(const Bytes& frame, maxport::zstd::LiteralsWorkspace& workspace) {
  if (frame.size() < 9) return;
  // The size that the frame states, if it is small enough to try.
  const size_t size = maxport::load_le<uint32_t>(frame.data() + 5);
  if (size > 1 << 20) return;
  Bytes ours(size), library(size + 1);
  if (!maxport::zstd::decode_literals_frame(frame, workspace, ours)) return;
  library.resize(ZSTD_decompress(library.data(), library.size(), frame.data(), frame.size()));
  require(ours == library);
}

void write_any(const Bytes& in, size_t block, maxport::zstd::LiteralsWorkspace& workspace) {
  Bytes frame(maxport::zstd::literals_frame_bound(in.size(), block));
  frame.resize(maxport::zstd::encode_literals_frame(in, block, workspace, frame));
  Bytes ours(in.size()), library(in.size() + 1);
  require(maxport::zstd::decode_literals_frame(frame, workspace, ours) && ours == in);
  require(ZSTD_decompress(library.data(), library.size(), frame.data(), frame.size()) == in.size());
  library.resize(in.size());
  require(library == in);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static maxport::zstd::LiteralsWorkspace workspace;
  const Bytes in(reinterpret_cast<const std::byte*>(data) + 1, reinterpret_cast<const std::byte*>(data) + size);
  if (data[0] % 2 == 0) {
    read_any(in, workspace);
  } else {
    // Repeated, as short input is not worth a code.
    Bytes longer;
    for (unsigned i = 0; i <= data[0] / 16u && longer.size() < 1 << 18; ++i) longer.insert(longer.end(), in.begin(), in.end());
    write_any(longer, size_t{1} << (data[0] % 16 + 3), workspace);
  }
  return 0;
}
