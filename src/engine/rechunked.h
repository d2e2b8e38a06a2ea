// A stored array cut anew, in a temporary file: for arrays whose chunks hold all layers at once, as MaxText writes them.
//
// A chunk of such an array has a little of each row of each Hugging Face tensor, so that going through it would write
// runs of a few hundred bytes, and keeping as many chunks as make a row would take gigabytes. Here each chunk is decoded
// once, from its beginning to its end, into tiles that are then read as if they were chunks.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "engine/run_segments.h"
#include "storage/storage.h"
#include "zarr/array_reader.h"

namespace maxport::engine {

class Rechunked {
 public:
  /// `array` must outlive this. Tiles have `tile_shape`, those at the array's edges too.
  Rechunked(const zarr::ArrayReader& array, Shape tile_shape) : array_(array), tile_shape_(std::move(tile_shape)) {}

  const Shape& tile_shape() const { return tile_shape_; }
  /// Size of the temporary file.
  uint64_t bytes() const;

  /// Writes the file unless that was done, with so many threads. Safe from several threads: one does it, others wait.
  Result<> make(Storage& storage, const std::string& path, int threads, const Cancelled& cancelled);
  /// As ArrayReader::read; after make().
  Result<> read(const Box& box, MutableByteSpan out, zarr::Scratch& scratch) const;
  /// Removes the file, for good.
  Result<> drop(Storage& storage);

  /// Memory that a thread of make() takes at most, where chunks decode in pieces (zarr/chunk_stream.h).
  uint64_t thread_bytes() const;

 private:
  struct Buffers;
  Result<> write_all(WritableFile& file, int threads, const Cancelled& cancelled) const;
  Result<> write_chunk(std::span<const int64_t> position, WritableFile& file, const Cancelled& cancelled, Buffers& buffers) const;
  Result<> write_piece(const Box& piece, std::span<const int64_t> extents, ByteSpan bytes, WritableFile& file, Buffers& buffers) const;
  Result<> write_part(const Box& tile, uint64_t tile_offset, const Box& part, ByteSpan dense, WritableFile& file) const;
  uint64_t tile_bytes() const;
  uint64_t tile_offset(std::span<const int64_t> position) const;
  Box tile_box(std::span<const int64_t> position) const;
  int64_t rows_per_piece() const;
  int64_t element_bytes() const { return dtype_bytes(array_.spec().dtype); }

  const zarr::ArrayReader& array_;
  const Shape tile_shape_;
  std::mutex mutex_;
  std::string path_;
  std::unique_ptr<ReadableFile> file_;  // once it is whole
};

}  // namespace maxport::engine
