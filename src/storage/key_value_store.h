// Keys to byte strings: what a Zarr array needs from below, whether an OCDBT database or a folder of files holds it.
//
// Readers are safe for any number of threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace maxport {

/// Where a value lies, for messages and for verification. `path` can be given to Storage::open; it is empty for values
/// held inline in a node.
struct ValueLocation {
  std::string path = {};
  uint64_t offset = 0;
  uint64_t length = 0;
};

class KeyValueReader {
 public:
  virtual ~KeyValueReader() = default;

  /// The whole value; nothing when the key is absent. More than `max_bytes` is kResourceLimit.
  virtual Result<std::optional<Bytes>> read(std::string_view key, uint64_t max_bytes = uint64_t{4} << 30) = 0;
  /// `length` bytes from `offset` of the value, e.g. one sub-chunk of a shard.
  virtual Result<Bytes> read_range(std::string_view key, uint64_t offset, uint64_t length) = 0;
  /// Where the value lies; nothing when the key is absent.
  virtual Result<std::optional<ValueLocation>> locate(std::string_view key) = 0;
  /// Calls `visit` with each key that starts with `prefix`, in byte order. Stops at the first error.
  virtual Result<> list(std::string_view prefix,
                        const std::function<Result<>(std::string_view key, const ValueLocation& where)>& visit) = 0;
};

/// One value of a finished segment.
struct StoredValue {
  std::string key = {};
  uint64_t offset = 0;  ///< in the segment's data file; 0 where each value is a file of its own
  uint64_t length = 0;
  std::optional<Bytes> inline_value =
      {};  ///< the value itself, when it is small and the store keeps such values in its index
};

/// What a finished, durable segment holds. A journal keeps these; a resumed run adopts them instead of writing again.
struct SegmentRecord {
  uint64_t index = 0;
  std::string file;    ///< relative to the store's root; empty where each value is a file of its own or all are inline
  uint64_t bytes = 0;  ///< size of that file
  std::vector<StoredValue> values;
};

/// An ordered run of values that one thread writes. Its bytes depend only on what is put, so the store as a whole is
/// the same whatever thread wrote which segment when.
class Segment {
 public:
  virtual ~Segment() = default;
  /// Says how many bytes of values will probably be put; a hint for the file system, best given before the first.
  virtual void expect(uint64_t) {}
  virtual Result<> put(std::string_view key, ByteSpan value) = 0;
  /// Makes the segment durable (when `sync`) and says what it holds.
  virtual Result<SegmentRecord> finish(bool sync) = 0;
};

/// Fills an empty store, segment by segment. start_segment and adopt may be called from several threads; each index is
/// used once, by either of them: a started segment belongs to the store once its finish() succeeded, adopt() adds one
/// that an earlier run or another process finished. A writer must outlive its segments.
class KeyValueWriter {
 public:
  virtual ~KeyValueWriter() = default;
  virtual Result<std::unique_ptr<Segment>> start_segment(uint64_t index) = 0;
  virtual Result<> adopt(SegmentRecord record) = 0;
  /// Writes whatever makes the values findable (the B+tree and manifest of an OCDBT database). Keys put twice are
  /// kInternal. Call once, after every segment was finished or adopted.
  virtual Result<> finish(bool sync) = 0;
};

/// Files below a folder: key "a/b" is the file "<folder>/a/b". Keys with empty, "." or ".." parts, a NUL or a backslash
/// are refused with kInvalidArgument, since such a key is no file of its own or another file to other programs.
class Storage;
std::unique_ptr<KeyValueReader> open_directory_store(Storage& storage, std::string folder);
std::unique_ptr<KeyValueWriter> create_directory_store(Storage& storage, std::string folder);

}  // namespace maxport
