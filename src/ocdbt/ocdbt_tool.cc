// Writes and reads OCDBT databases from a command line, for tests that let other programs judge them. Not installed.
//
//   ocdbt_tool write-synthetic DIR COUNT NODE_BYTES INLINE_BYTES   keys and values that make_entry() below makes
//   ocdbt_tool write DIR NODE_BYTES INLINE_BYTES                   lines "key value" in hexadecimal from standard input
//   ocdbt_tool dump DIR [PREFIX]                                   lines "key-in-hexadecimal sha256-of-value"
//   ocdbt_tool list DIR [PREFIX]                                   lines "key-in-hexadecimal length"
//   ocdbt_tool read DIR KEY                                        the value
#include <sys/resource.h>

#include <charconv>
#include <iostream>

#include "base/digest.h"
#include "ocdbt/database.h"

namespace maxport::ocdbt {
namespace {

using Arguments = std::span<const char* const>;

Result<uint32_t> number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(ErrorKind::kInvalidArgument, "\"{}\" is no number below 2^32", printable(text));
  return value;
}

Result<std::string> from_hex(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i += 2) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + std::min(i + 2, text.size()), byte, 16);
    if (error != std::errc() || end != text.data() + i + 2)
      return fail(ErrorKind::kInvalidArgument, "\"{}\" is not hexadecimal", printable(text.substr(0, 40)));
    out += static_cast<char>(byte);
  }
  return out;
}

/// The i-th chunk of a large model: 64 chunks a tensor, 100 tensors a layer. The value repeats the key up to a length
/// of 0 to 63 bytes.
std::pair<std::string, std::string> make_entry(uint32_t i) {
  const std::string key =
      fmt::format("params.params.decoder.layers_{}.tensor_{}.kernel/c/{}/{}", i / 6400, i / 64 % 100, i / 8 % 8, i % 8);
  return {key, (key + key).substr(0, i * uint64_t{37} % 64)};
}

std::unique_ptr<KeyValueWriter> create(const char* folder, uint32_t node_bytes, uint32_t inline_bytes) {
  WriterOptions options;
  options.max_decoded_node_bytes = node_bytes;
  options.max_inline_value_bytes = inline_bytes;
  return create_database(local_storage(), folder, options);
}

Result<> write_synthetic(Arguments arguments) {
  MAXPORT_ASSIGN_OR_RETURN(const uint32_t count, number(arguments[1]));
  MAXPORT_ASSIGN_OR_RETURN(const uint32_t node_bytes, number(arguments[2]));
  MAXPORT_ASSIGN_OR_RETURN(const uint32_t inline_bytes, number(arguments[3]));
  const auto writer = create(arguments[0], node_bytes, inline_bytes);
  constexpr uint32_t kSegmentEntries = 100000;
  for (uint32_t start = 0; start < count; start += kSegmentEntries) {
    MAXPORT_ASSIGN_OR_RETURN(const auto segment, writer->start_segment(start / kSegmentEntries));
    for (uint32_t i = start; i < std::min(count, start + kSegmentEntries); ++i) {
      const auto [key, value] = make_entry(i);
      MAXPORT_RETURN_IF_ERROR(segment->put(key, as_bytes(value)));
    }
    MAXPORT_RETURN_IF_ERROR(segment->finish(false));
  }
  MAXPORT_RETURN_IF_ERROR(writer->finish(false));
  rusage usage;
  ::getrusage(RUSAGE_SELF, &usage);
  std::cout << "peak_bytes " << usage.ru_maxrss * 1024 << "\n";
  return {};
}

/// Lines go to segments in turns of 1000.
Result<> write_lines(Arguments arguments) {
  MAXPORT_ASSIGN_OR_RETURN(const uint32_t node_bytes, number(arguments[1]));
  MAXPORT_ASSIGN_OR_RETURN(const uint32_t inline_bytes, number(arguments[2]));
  const auto writer = create(arguments[0], node_bytes, inline_bytes);
  std::unique_ptr<Segment> segment;
  std::string line;
  for (uint64_t i = 0; std::getline(std::cin, line); ++i) {
    if (i % 1000 == 0) {
      if (segment) MAXPORT_RETURN_IF_ERROR(segment->finish(false));
      MAXPORT_ASSIGN_OR_RETURN(segment, writer->start_segment(i / 1000));
    }
    const size_t space = std::min(line.find(' '), line.size());
    MAXPORT_ASSIGN_OR_RETURN(const std::string key, from_hex(std::string_view(line).substr(0, space)));
    MAXPORT_ASSIGN_OR_RETURN(const std::string value,
                             from_hex(std::string_view(line).substr(std::min(space + 1, line.size()))));
    MAXPORT_RETURN_IF_ERROR(segment->put(key, as_bytes(value)));
  }
  if (segment) MAXPORT_RETURN_IF_ERROR(segment->finish(false));
  return writer->finish(false);
}

Result<> list(Arguments arguments, bool with_digests) {
  MAXPORT_ASSIGN_OR_RETURN(const auto reader, open_database(local_storage(), arguments[0]));
  const auto visit = [&](std::string_view key, const ValueLocation& where) -> Result<> {
    std::cout << hex(as_bytes(key)) << ' ';
    if (!with_digests) {
      std::cout << where.length << '\n';
      return {};
    }
    MAXPORT_ASSIGN_OR_RETURN(const std::optional<Bytes> value, reader->read(key));
    if (!value) return fail(ErrorKind::kInternal, "the key \"{}\" is listed but cannot be read", printable(key));
    std::cout << sha256_hex(*value) << '\n';
    return {};
  };
  return reader->list(arguments.size() > 1 ? arguments[1] : "", visit);
}

Result<> read(Arguments arguments) {
  MAXPORT_ASSIGN_OR_RETURN(const auto reader, open_database(local_storage(), arguments[0]));
  MAXPORT_ASSIGN_OR_RETURN(const std::optional<Bytes> value, reader->read(arguments[1]));
  if (!value) return fail(ErrorKind::kNotFound, "there is no key \"{}\"", printable(arguments[1]));
  std::cout << as_text(*value);
  return {};
}

Result<> run(std::string_view command, Arguments arguments) {
  const size_t count = arguments.size();
  if (command == "write-synthetic" && count == 4) return write_synthetic(arguments);
  if (command == "write" && count == 3) return write_lines(arguments);
  if (command == "dump" && (count == 1 || count == 2)) return list(arguments, true);
  if (command == "list" && (count == 1 || count == 2)) return list(arguments, false);
  if (command == "read" && count == 2) return read(arguments);
  return fail(ErrorKind::kInvalidArgument, "see the head of ocdbt_tool.cc for what can be asked");
}

}  // namespace
}  // namespace maxport::ocdbt

int main(int count, char** arguments) {
  using namespace maxport;
  std::ios::sync_with_stdio(false);
  const auto all = std::span<const char* const>(arguments, static_cast<size_t>(count));
  const Result<> result = ocdbt::run(count > 1 ? all[1] : "", all.subspan(std::min<size_t>(2, all.size())));
  if (result) return 0;
  std::cerr << result.error().message() << "\n";
  return exit_code(result.error().kind());
}
