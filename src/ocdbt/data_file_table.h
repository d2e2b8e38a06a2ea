// The table of data files at the head of manifests and nodes (formats.md 1.3), and where its paths lead.
//
//   num_files n | path_prefix_length × n-1 | path_suffix_length × n | base_path_length × n | path_suffix bytes
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace maxport::ocdbt {

/// Keys, paths and the columns that measure them are limited to 16 bits.
inline constexpr size_t kMaxPathBytes = 65535;

/// A file that holds values or nodes. `base_path` is empty or ends with '/'; a node that lies in the file inherits it.
struct DataFile {
  std::string base_path = {};
  std::string relative_path = {};

  std::string path() const { return base_path + relative_path; }
  auto operator<=>(const DataFile&) const = default;
};

/// Full paths must fit kMaxPathBytes.
void encode_data_file_table(const std::vector<DataFile>& files, ByteWriter& writer);
Result<std::vector<DataFile>> decode_data_file_table(ByteReader& reader);

/// Where a path taken from a database leads, relative to the database's root. kCorruptData for one that is empty,
/// absolute, or has "", "." or ".." parts, a backslash or a NUL: a database never reaches beyond its folder.
Result<std::string> resolve_path(std::string_view inherited, std::string_view path);

}  // namespace maxport::ocdbt
