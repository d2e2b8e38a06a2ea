#include "ocdbt/data_file_table.h"

#include <algorithm>

namespace maxport::ocdbt {
namespace {

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// Bytes of the previous path that the next one repeats. The relative part may be shared only by files of one base
/// path.
size_t shared_bytes(const DataFile& previous, const DataFile& next) {
  const size_t shared = common_prefix(previous.path(), next.path());
  if (previous.base_path == next.base_path) return shared;
  return std::min({shared, previous.base_path.size(), next.base_path.size()});
}

Result<std::vector<uint16_t>> read_lengths(ByteReader& reader, uint64_t count) {
  std::vector<uint16_t> lengths(count);
  for (uint16_t& length : lengths) {
    MAXPORT_ASSIGN_OR_RETURN(const uint64_t value, reader.read_varint(16));
    length = static_cast<uint16_t>(value);
  }
  return lengths;
}

/// Paths may repeat each other's beginnings, so a table can be far larger than its bytes.
constexpr uint64_t kMaxTableBytes = uint64_t{64} << 20;

}  // namespace

void encode_data_file_table(const std::vector<DataFile>& files, ByteWriter& writer) {
  writer.write_varint(files.size());
  std::vector<size_t> shared(files.size(), 0);
  for (size_t i = 1; i < files.size(); ++i) {
    shared[i] = shared_bytes(files[i - 1], files[i]);
    writer.write_varint(shared[i]);
  }
  for (size_t i = 0; i < files.size(); ++i) writer.write_varint(files[i].path().size() - shared[i]);
  for (const DataFile& file : files) writer.write_varint(file.base_path.size());
  for (size_t i = 0; i < files.size(); ++i) writer.write_text(files[i].path().substr(shared[i]));
}

Result<std::vector<DataFile>> decode_data_file_table(ByteReader& reader) {
  const size_t start = reader.offset();
  MAXPORT_ASSIGN_OR_RETURN(const uint64_t count, reader.read_varint(64));
  if (count > reader.remaining())
    return fail(ErrorKind::kCorruptData, "the table at offset {} states {} data files, more than its bytes can hold",
                start, count);
  if (count == 0) return std::vector<DataFile>();
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<uint16_t> shared, read_lengths(reader, count - 1));
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<uint16_t> suffixes, read_lengths(reader, count));
  MAXPORT_ASSIGN_OR_RETURN(const std::vector<uint16_t> bases, read_lengths(reader, count));
  std::vector<DataFile> files;
  std::string path;
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t prefix = i == 0 ? 0 : shared[i - 1];
    const size_t offset = reader.offset();
    MAXPORT_ASSIGN_OR_RETURN(const ByteSpan suffix, reader.read_bytes(suffixes[i]));
    const std::string previous_base = i == 0 ? std::string() : files.back().base_path;
    const size_t size = prefix + suffix.size();
    if (prefix > path.size() || size > kMaxPathBytes || bases[i] > size)
      return fail(ErrorKind::kCorruptData,
                  "data file {} of {} at offset {}: it repeats {} of {} bytes, has {} in all and a base path of {}", i,
                  count, offset, prefix, path.size(), size, bases[i]);
    path.resize(prefix);
    path += as_text(suffix);
    if ((total += size) > kMaxTableBytes)
      return fail(ErrorKind::kCorruptData, "the table at offset {}: its paths have more than {} bytes", start,
                  kMaxTableBytes);
    files.push_back({path.substr(0, bases[i]), path.substr(bases[i])});
    if (prefix > std::min<size_t>(previous_base.size(), bases[i]) && previous_base != files.back().base_path)
      return fail(ErrorKind::kCorruptData,
                  "data file {} of {} at offset {}: it repeats {} bytes of a path with another base path", i, count,
                  offset, prefix);
  }
  return files;
}

Result<std::string> resolve_path(std::string_view inherited, std::string_view path) {
  std::string whole = std::string(inherited) + std::string(path);
  bool good = !whole.empty() && whole.size() <= kMaxPathBytes &&
              whole.find_first_of(std::string_view("\0\\", 2)) == std::string::npos;
  for (size_t start = 0; good && start <= whole.size();) {
    const size_t end = std::min(whole.find('/', start), whole.size());
    const std::string_view part = std::string_view(whole).substr(start, end - start);
    good = !part.empty() && part != "." && part != "..";
    start = end + 1;
  }
  if (good) return whole;
  return fail(ErrorKind::kCorruptData, "the data file \"{}\" does not lie below the database's folder",
              printable(std::string_view(whole).substr(0, 200)));
}

}  // namespace maxport::ocdbt
