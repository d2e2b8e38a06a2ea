#include "engine/rechunked.h"

#include <algorithm>
#include <atomic>

#include "base/buffer.h"
#include "zarr/elements.h"
#include "zarr/grid.h"

namespace maxport::engine {
namespace {

/// Decoded bytes that are distributed at once: more make longer runs.
constexpr int64_t kPieceBytes = int64_t{4} << 20;
/// A decompressor with its window, and the encoded bytes that it reads.
constexpr uint64_t kDecoderBytes = uint64_t{4} << 20;

Shape tile_counts(std::span<const int64_t> shape, std::span<const int64_t> tile) {
  Shape counts;
  for (size_t axis = 0; axis < shape.size(); ++axis) counts.push_back((shape[axis] + tile[axis] - 1) / tile[axis]);
  return counts;
}

/// Byte offset of `origin` in dense elements of `extents`.
uint64_t dense_offset(std::span<const int64_t> origin, std::span<const int64_t> extents, int64_t element_bytes) {
  const std::vector<int64_t> strides = row_major_strides(extents);
  int64_t offset = 0;
  for (size_t axis = 0; axis < origin.size(); ++axis) offset += origin[axis] * strides[axis];
  return static_cast<uint64_t>(offset * element_bytes);
}

Shape minus(std::span<const int64_t> a, std::span<const int64_t> b) {
  Shape out(a.begin(), a.end());
  for (size_t axis = 0; axis < out.size(); ++axis) out[axis] -= b[axis];
  return out;
}

}  // namespace

struct Rechunked::Buffers {
  Buffer piece, part;
};

uint64_t Rechunked::tile_bytes() const { return static_cast<uint64_t>(element_count(tile_shape_) * element_bytes()); }

uint64_t Rechunked::bytes() const {
  return static_cast<uint64_t>(element_count(tile_counts(array_.spec().shape, tile_shape_))) * tile_bytes();
}

int64_t Rechunked::rows_per_piece() const {
  const Shape& chunk = array_.spec().chunk_shape;
  const int64_t row = element_count(std::span(chunk).subspan(1)) * element_bytes();
  return std::clamp<int64_t>(kPieceBytes / std::max<int64_t>(row, 1), 1, chunk[0]);
}

uint64_t Rechunked::thread_bytes() const {
  const Shape& chunk = array_.spec().chunk_shape;
  const auto row = static_cast<uint64_t>(element_count(std::span(chunk).subspan(1)) * element_bytes());
  const uint64_t decoded = zarr::can_stream(array_.spec()) ? kDecoderBytes : 2 * row * static_cast<uint64_t>(chunk[0]);
  return decoded + static_cast<uint64_t>(rows_per_piece()) * row + tile_bytes();
}

uint64_t Rechunked::tile_offset(std::span<const int64_t> position) const {
  return dense_offset(position, tile_counts(array_.spec().shape, tile_shape_), 1) * tile_bytes();
}

Box Rechunked::tile_box(std::span<const int64_t> position) const {
  Box box{Shape(position.begin(), position.end()), tile_shape_};
  for (size_t axis = 0; axis < box.shape.size(); ++axis) {
    box.origin[axis] *= tile_shape_[axis];
    box.shape[axis] = std::min(box.shape[axis], array_.spec().shape[axis] - box.origin[axis]);
  }
  return box;
}

Result<> Rechunked::make(Storage& storage, const std::string& path, int threads, const Cancelled& cancelled) {
  const std::lock_guard lock(mutex_);
  if (file_) return {};
  path_ = path;
  MAXPORT_ASSIGN_OR_RETURN(const auto file, storage.create(path));
  file->reserve(bytes());
  // Tiles at the array's edges are not filled to their ends; the file is as long as if they were.
  MAXPORT_RETURN_IF_ERROR(file->write_at(bytes() - 1, Bytes(1)));
  MAXPORT_RETURN_IF_ERROR(write_all(*file, threads, cancelled));
  MAXPORT_RETURN_IF_ERROR(file->close());
  MAXPORT_ASSIGN_OR_RETURN(file_, storage.open(path));
  return {};
}

Result<> Rechunked::write_all(WritableFile& file, int threads, const Cancelled& cancelled) const {
  const Shape grid = zarr::grid_shape(array_.spec());
  std::vector<Shape> positions;
  zarr::for_each_position(grid, [&](std::span<const int64_t> position) {
    positions.emplace_back(position.begin(), position.end());
    return true;
  });
  SegmentRun run{.count = positions.size(), .threads = threads, .is_done = [](size_t) { return false; }, .cancelled = cancelled,
                 .start_thread = {}};
  run.start_thread = [&]() -> MakeSegment {
    return [&, buffers = std::make_shared<Buffers>()](size_t chunk, const Cancelled& stop) -> Result<Finisher::Task> {
      MAXPORT_RETURN_IF_ERROR(write_chunk(positions[chunk], file, stop, *buffers));
      return [] { return Result<>(); };
    };
  };
  return run_segments(run);
}

Result<> Rechunked::write_chunk(std::span<const int64_t> position, WritableFile& file, const Cancelled& cancelled,
                                Buffers& buffers) const {
  const zarr::ArraySpec& spec = array_.spec();
  const Box chunk = zarr::chunk_box(spec, position);
  MAXPORT_ASSIGN_OR_RETURN(const auto stream, array_.stream(position));
  const int64_t step = rows_per_piece();
  for (int64_t row = 0; row < spec.chunk_shape[0]; row += step) {
    if (cancelled && cancelled()) return fail(ErrorKind::kInterrupted, "stopped");
    Shape extents = spec.chunk_shape;
    extents[0] = std::min(step, spec.chunk_shape[0] - row);
    const MutableByteSpan bytes = buffers.piece.take(static_cast<size_t>(element_count(extents) * element_bytes()));
    MAXPORT_RETURN_IF_ERROR(stream->read(bytes));
    Box piece = chunk;
    piece.origin[0] += row;
    piece.shape[0] = std::min(extents[0], chunk.shape[0] - row);
    if (!piece.empty() && piece.shape[0] > 0) MAXPORT_RETURN_IF_ERROR(write_piece(piece, extents, bytes, file, buffers));
  }
  return {};
}

/// `bytes` holds elements of `extents`, of which those of `piece` lie within the array.
Result<> Rechunked::write_piece(const Box& piece, std::span<const int64_t> extents, ByteSpan bytes, WritableFile& file,
                                Buffers& buffers) const {
  Result<> status;
  zarr::for_each_position(zarr::touched_chunks(piece, tile_shape_), [&](std::span<const int64_t> position) {
    const Box tile = tile_box(position), part = intersect(tile, piece);
    const MutableByteSpan dense = buffers.part.take(static_cast<size_t>(element_count(part.shape) * element_bytes()));
    const uint64_t from = dense_offset(minus(part.origin, piece.origin), extents, element_bytes());
    zarr::copy_elements(array_.spec().dtype, part.shape, {bytes.data() + from, row_major_strides(extents)},
                        {dense.data(), row_major_strides(part.shape)});
    status = write_part(tile, tile_offset(position), part, dense, file);
    return status.has_value();
  });
  return status;
}

/// The part's elements at their places in the tile, as few writes as there are contiguous runs.
Result<> Rechunked::write_part(const Box& tile, uint64_t tile_offset, const Box& part, ByteSpan dense, WritableFile& file) const {
  size_t outer = part.shape.size();
  int64_t run = 1;
  for (bool whole = true; outer > 0 && whole; --outer) {
    run *= part.shape[outer - 1];
    whole = part.shape[outer - 1] == tile_shape_[outer - 1];
  }
  const auto run_bytes = static_cast<uint64_t>(run * element_bytes());
  Box runs{minus(part.origin, tile.origin), part.shape};
  for (size_t axis = outer; axis < runs.shape.size(); ++axis) runs.shape[axis] = 1;
  uint64_t done = 0;
  Result<> status;
  zarr::for_each_position(runs, [&](std::span<const int64_t> at) {
    status = file.write_at(tile_offset + dense_offset(at, tile_shape_, element_bytes()), dense.subspan(done, run_bytes));
    done += run_bytes;
    return status.has_value();
  });
  return status;
}

Result<> Rechunked::read(const Box& box, MutableByteSpan out, zarr::Scratch& scratch) const {
  MAXPORT_CHECK(file_ != nullptr);
  const std::vector<int64_t> strides = row_major_strides(box.shape);
  Result<> status;
  zarr::for_each_position(zarr::touched_chunks(box, tile_shape_), [&](std::span<const int64_t> position) {
    const Box tile = tile_box(position), part = intersect(tile, box);
    const MutableByteSpan bytes = scratch.decoded().take(tile_bytes());
    status = file_->read_at(tile_offset(position), bytes);
    if (!status) return false;
    const uint64_t from = dense_offset(minus(part.origin, tile.origin), tile_shape_, element_bytes());
    const uint64_t to = dense_offset(minus(part.origin, box.origin), box.shape, element_bytes());
    zarr::copy_elements(array_.spec().dtype, part.shape, {bytes.data() + from, row_major_strides(tile_shape_)},
                        {out.data() + to, strides});
    return true;
  });
  return status;
}

Result<> Rechunked::drop(Storage& storage) {
  const std::lock_guard lock(mutex_);
  file_.reset();
  return path_.empty() ? Result<>() : storage.remove_all(path_);
}

}  // namespace maxport::engine
