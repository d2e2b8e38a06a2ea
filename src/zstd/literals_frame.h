// Zstandard frames of nothing but literals: Huffman codes, runs and plain bytes, no search for repetitions (RFC 8878, 3.1.1).
// Any Zstandard reader takes them. What vary little but never repeat, like the exponents of weights, lose nothing by it and
// are coded several times faster than by the library.
//
//   frame    u32 magic number, u8 descriptor (single segment, size in 4 bytes), u32 bytes, blocks
//   block    u24: last, kind (plain, run, compressed), size; its bytes
//   content  of a compressed block: literals header of 5 bytes, description of the code, sizes of the first three of four
//            streams, streams, u8 0 for no sequences
#pragma once

#include <memory>

#include "base/bytes.h"

namespace maxport::zstd {

/// What a frame of that many bytes can need at most, with what the writer may touch beyond it.
size_t literals_frame_bound(size_t bytes, size_t block_bytes);

/// Tables that a thread keeps from frame to frame.
class LiteralsWorkspace {
 public:
  LiteralsWorkspace();
  ~LiteralsWorkspace();
  LiteralsWorkspace(LiteralsWorkspace&&) noexcept;
  LiteralsWorkspace& operator=(LiteralsWorkspace&&) noexcept;

  /// Makes what is written next independent of what was written before.
  void forget();

  struct Tables;
  Tables& tables() { return *tables_; }

 private:
  std::unique_ptr<Tables> tables_;
};

/// Writes `in` as a frame with blocks of `block_bytes`, at least 1 and 128 KiB at most, into `out`, which has
/// literals_frame_bound(in.size(), block_bytes) bytes. Returns the frame's size. A code that suits is kept for later blocks
/// and frames until forget(): a reader need not build its tables anew.
size_t encode_literals_frame(ByteSpan in, size_t block_bytes, LiteralsWorkspace& workspace, MutableByteSpan out);

/// Decodes a frame of exactly out.size() bytes. False for one that is damaged or of any other kind, which is for the
/// library to judge; `out` then has unspecified content. Untrusted input.
bool decode_literals_frame(ByteSpan frame, LiteralsWorkspace& workspace, MutableByteSpan out);

}  // namespace maxport::zstd
