// What a Zarr array is: shape, chunk grid, element type and the codecs of its chunks, for both versions of the format.
//
// formats.md section 2; Zarr v2 (".zarray") and v3 ("zarr.json"). A spec is a plain value without I/O; metadata.h
// turns it into text and back, chunk.h encodes and decodes chunks by it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace maxport::zarr {

enum class Version { kV2, kV3 };

/// The codec chains that maxport writes.
///   kNone:  v2 no compressor, v3 bytes -> crc32c
///   kBlosc: v3 bytes -> blosc(zstd, level 1, shuffle) -> crc32c: byte planes, Huffman codes without search for repetitions
///   kLz4:   v3 bytes -> blosc(lz4, level 1, bitshuffle) -> crc32c: larger, decoded faster
///   kZstd:  v2 and v3 zstd level 1, one frame with content checksum
enum class Compression { kNone, kBlosc, kLz4, kZstd };

/// True for what makes blosc frames, which only Zarr v3 checks.
constexpr bool uses_blosc(Compression compression) { return compression == Compression::kBlosc || compression == Compression::kLz4; }

enum class CodecKind { kTranspose, kBytes, kSharding, kBlosc, kZstd, kGzip, kZlib, kBzip2, kCrc32c };

enum class Shuffle { kNone = 0, kByte = 1, kBit = 2 };

struct Sharding;

/// One codec of a chain. Only the fields that its kind names are used.
struct Codec {
  CodecKind kind = CodecKind::kBytes;
  int level = 0;                             ///< kZstd, kGzip, kZlib, kBzip2, kBlosc
  bool checksum = false;                     ///< kZstd: content checksum in the frame
  bool big_endian = false;                   ///< kBytes
  std::vector<int> order = {};                 ///< kTranspose: axis i of the encoded array is axis order[i] of the decoded
  std::string compressor = {};                ///< kBlosc: "lz4", "zstd", ...
  Shuffle shuffle = Shuffle::kNone;          ///< kBlosc
  int64_t type_size = 1;                     ///< kBlosc: element size that the shuffle works on, in bytes
  int64_t block_size = 0;                    ///< kBlosc: bytes, 0 = chosen by the library
  std::shared_ptr<const Sharding> sharding = {};  ///< kSharding

  bool operator==(const Codec& other) const;
};

/// Zarr v3 "sharding_indexed": a chunk made of sub-chunks that are encoded one by one, and an index of them.
struct Sharding {
  Shape chunk_shape;  ///< of a sub-chunk; divides the outer chunk exactly
  std::vector<Codec> codecs;
  std::vector<Codec> index_codecs;  ///< kBytes, then at most kCrc32c
  bool index_at_end = true;

  bool operator==(const Sharding&) const = default;
};

struct KeyEncoding {
  bool prefixed = true;  ///< v3 "default": "c" before the indices; otherwise v2 style
  char separator = '/';  ///< between indices

  bool operator==(const KeyEncoding&) const = default;
};

struct ArraySpec {
  Version version = Version::kV3;
  Shape shape = {};        ///< in elements; empty for a scalar
  Shape chunk_shape = {};  ///< same rank, every extent at least 1
  DType dtype = DType::kFloat32;
  /// In order of encoding: transposes, then kBytes or kSharding, then codecs of bytes. A v2 array of order "F" has a
  /// transpose that reverses the axes.
  std::vector<Codec> codecs = {};
  KeyEncoding key_encoding = {};
  /// One element as in memory (little-endian); empty when the metadata gives none (v2 null), which reads as zero.
  Bytes fill_value = {};

  bool operator==(const ArraySpec&) const = default;
};

/// The limit on the bytes of one decoded chunk that no spec may exceed (2^40); a reader's own limit is lower.
inline constexpr int64_t kMaxChunkBytes = int64_t{1} << 40;

/// A spec that maxport writes. Ranks above 32, extents below 0, chunk extents below 1, a chunk or array whose size
/// overflows, and kBlosc or kLz4 with v2 or with chunks of 2 GiB and more are kInvalidArgument; element types that TensorStore
/// does not know are kUnsupported.
Result<ArraySpec> make_array_spec(Version version, DType dtype, Shape shape, Shape chunk_shape, Compression compression);

/// The checks that every spec passes, whoever made it; `kind` is the kind of error that a violation is.
Result<> check_array_spec(const ArraySpec& spec, ErrorKind kind);

/// True when chunks are stored in fewer bytes than they hold, as far as their content allows.
bool compresses(const ArraySpec& spec);

/// Number of chunks along each axis.
Shape grid_shape(const ArraySpec& spec);
int64_t chunk_count(const ArraySpec& spec);
/// Bytes of one full chunk, decoded. Edge chunks are stored full size (formats.md 2).
int64_t chunk_bytes(const ArraySpec& spec);
/// Which elements of the array the chunk at a grid position holds; an edge chunk's box ends at the array's edge.
Box chunk_box(const ArraySpec& spec, std::span<const int64_t> position);

/// Key of a chunk relative to the array: "c/0/3", "0.3"; a scalar's is "c" (default encoding) or "0" (v2 style).
std::string chunk_key(const ArraySpec& spec, std::span<const int64_t> position);
/// The same, put after what `out` holds.
void append_chunk_key(const ArraySpec& spec, std::span<const int64_t> position, std::string& out);

/// The key of the array called `name` in its store: "<name>/<key>", or just the key for the empty name.
std::string array_key(std::string_view name, std::string_view key);

}  // namespace maxport::zarr
