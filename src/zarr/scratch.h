// Buffers and compression contexts that a thread keeps from chunk to chunk, so that coding a chunk allocates nothing.
#pragma once

#include <memory>

#include "base/buffer.h"
#include "zstd/literals_frame.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace maxport::zarr {

/// Belongs to one thread at a time.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(Scratch&&) noexcept;
  Scratch& operator=(Scratch&&) noexcept;

  /// Two buffers that codecs pass bytes back and forth between.
  Buffer& first() { return buffers_[0]; }
  Buffer& second() { return buffers_[1]; }
  /// A decoded chunk, where the caller's memory cannot hold it as it is.
  Buffer& decoded() { return buffers_[2]; }
  /// Elements whose byte order had to be reversed.
  Buffer& swapped() { return buffers_[3]; }
  /// The planes of a block.
  Buffer& planes() { return buffers_[4]; }
  /// A shard while it is put together.
  Bytes& shard() { return shard_; }
  /// For the sub-chunks of a shard.
  Scratch& inner();

  /// Working memory of LZ4, LZ4_sizeofState() bytes.
  void* lz4_state();
  zstd::LiteralsWorkspace& literals();
  ZSTD_CCtx_s* zstd_compressor();
  ZSTD_DCtx_s* zstd_decompressor();

 private:
  struct FreeCompressor {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  struct FreeDecompressor {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  Buffer buffers_[5];
  std::unique_ptr<std::byte[]> lz4_state_;
  std::unique_ptr<zstd::LiteralsWorkspace> literals_;
  Bytes shard_;
  std::unique_ptr<ZSTD_CCtx_s, FreeCompressor> zstd_compressor_;
  std::unique_ptr<ZSTD_DCtx_s, FreeDecompressor> zstd_decompressor_;
  std::unique_ptr<Scratch> inner_;
};

}  // namespace maxport::zarr
