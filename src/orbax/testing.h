// A small checkpoint for tests: every kind of leaf, one array in several chunks.
#pragma once

#include <gtest/gtest.h>

#include "orbax/checkpoint_writer.h"
#include "zarr/chunk.h"
#include "zarr/grid.h"

namespace maxport::orbax {

/// 6x4 float32 elements that count up from `first`.
inline Bytes kernel_bytes(float first = 0) {
  Bytes out(6 * 4 * 4);
  for (size_t i = 0; i < 24; ++i) store_le(std::bit_cast<uint32_t>(first + static_cast<float>(i)), &out[4 * i]);
  return out;
}

inline zarr::ArraySpec kernel_spec(const CheckpointWriterOptions& options) {
  return *zarr::make_array_spec(options.version, DType::kFloat32, {6, 4}, {4, 4}, options.compression);
}

inline std::vector<WriteLeaf> small_leaves(const CheckpointWriterOptions& options) {
  return {{{{"params"}, {"kernel"}}, std::string(kNumpyType), kernel_spec(options)},
          {{{"step"}}, std::string(kScalarType), int64_t{12}},
          {{{"rate"}}, std::string(kScalarType), 0.5},
          {{{"note"}}, std::string(kStringType), std::string("hello")},
          {{{"opt_state"}}, std::string(kEmptyDictType), EmptyLeaf{}}};
}

/// Puts the two chunks of the kernel.
inline Result<> put_kernel(CheckpointWriter& writer, const zarr::ArraySpec& spec, const Bytes& values) {
  MAXPORT_ASSIGN_OR_RETURN(auto segment, writer.values().start_segment(CheckpointWriter::kFirstFreeSegment));
  zarr::Scratch scratch;
  for (int64_t row = 0; row < 2; ++row) {
    Bytes chunk(4 * 4 * 4);
    std::copy(values.begin() + row * 64, values.begin() + std::min<int64_t>(96, row * 64 + 64), chunk.begin());
    MAXPORT_ASSIGN_OR_RETURN(const ByteSpan encoded, zarr::encode_chunk(spec, chunk, scratch));
    MAXPORT_RETURN_IF_ERROR(segment->put(
        zarr::array_key("params.kernel", zarr::chunk_key(spec, std::vector<int64_t>{row, 0})), encoded));
  }
  MAXPORT_RETURN_IF_ERROR(segment->finish(true));
  return {};
}

/// Writes the checkpoint to BASE/STEP.
inline Result<> write_small(Storage& storage, const std::string& base, const CheckpointWriterOptions& options = {},
                            int64_t step = 0) {
  MAXPORT_ASSIGN_OR_RETURN(auto writer,
                           CheckpointWriter::create(storage, base, step, small_leaves(options), options));
  MAXPORT_RETURN_IF_ERROR(put_kernel(*writer, kernel_spec(options), kernel_bytes()));
  return writer->commit();
}

/// OCDBT and directories, Zarr v2 and v3, with and without devices.
inline std::vector<CheckpointWriterOptions> all_layouts() {
  std::vector<CheckpointWriterOptions> out;
  for (const bool ocdbt : {true, false})
    for (const zarr::Version version : {zarr::Version::kV2, zarr::Version::kV3})
      for (const int64_t devices : {0, 2}) {
        CheckpointWriterOptions options;
        options.use_ocdbt = ocdbt;
        options.version = version;
        if (devices) options.devices = devices;
        out.push_back(std::move(options));
      }
  return out;
}

}  // namespace maxport::orbax
