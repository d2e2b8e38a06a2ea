// An OCDBT database: keys to values in a folder that holds manifest.ocdbt and data files (formats.md 1).
//
// The reader takes whatever stock TensorStore writes, the newest version of it; it keeps a bounded number of nodes and
// of open files. The writer makes a database of one version whose bytes depend only on the options and on what is put.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "storage/key_value_store.h"
#include "storage/storage.h"

namespace maxport::ocdbt {

/// Data files that a reader keeps open.
inline constexpr size_t kMaxOpenFiles = 64;

/// Opens the database in the folder `root`; `storage` must outlive the reader. kNotFound without a manifest,
/// kCorruptData (naming file and offset) for a damaged manifest or root node. Damage elsewhere is reported by the call
/// that meets it. Safe for any number of threads.
Result<std::unique_ptr<KeyValueReader>> open_database(Storage& storage, std::string root);

struct WriterOptions {
  std::array<std::byte, 16> uuid = {};
  uint64_t commit_time_nanoseconds = 0;  ///< since 1970
  /// Data files are named by this, a folder with '/', and 32 hex digits that depend on `seed` and the segment's index.
  /// "d/" and "ocdbt.process_0/d/" look like stock; nodes always go to "d/".
  std::string data_folder = "d/";
  std::string seed = {};
  /// Values up to this size are kept in the B+tree, as stock does with Zarr's metadata. At most 1 MiB.
  uint32_t max_inline_value_bytes = 1024;
  /// A node holds no more than this when decoded, as stock estimates it; Orbax uses 100 MB. 0: no limit.
  uint32_t max_decoded_node_bytes = 100'000'000;
  std::optional<int> zstd_level = 0;  ///< of nodes and manifest; nothing: not compressed
};

/// Fills a database in the folder `root`, which finish() makes when nothing else did; `storage` must outlive the
/// writer.
///
/// A segment is one data file: values follow each other in the order in which they were put, with less than 1 MiB held
/// back; a segment with inline values only has no file. finish() writes the nodes, then the manifest. It needs about
/// the size of all keys and inline values plus 40 bytes a key, and some 100 MB for one node of 100 MB.
std::unique_ptr<KeyValueWriter> create_database(Storage& storage, std::string root, WriterOptions options);

}  // namespace maxport::ocdbt
