#include "convert/journal.h"

#include <charconv>

namespace maxport::convert {
namespace {

/// Journals of the largest models stay far below this.
constexpr uint64_t kMaxJournalBytes = uint64_t{1} << 30;

std::optional<Bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  Bytes out;
  for (size_t i = 0; i < text.size(); i += 2) {
    unsigned value = 0;
    auto [end, error] = std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    if (error != std::errc() || end != text.data() + i + 2) return std::nullopt;
    out.push_back(static_cast<std::byte>(value));
  }
  return out;
}

Json to_json(const engine::SegmentResult& segment) {
  Json values = Json::array();
  for (const StoredValue& value : segment.record.values) {
    Json entry = Json::array({value.key, value.offset, value.length});
    if (value.inline_value) entry.push_back(hex(*value.inline_value));
    values.push_back(std::move(entry));
  }
  return {{"index", segment.record.index}, {"file", segment.record.file},     {"bytes", segment.record.bytes},
          {"values", std::move(values)},   {"digests", segment.digests}};
}

/// Our own bytes, protected by a CRC, but read as carefully as any.
Result<engine::SegmentResult> segment_from(const Json& json) {
  engine::SegmentResult out;
  const auto malformed = [] { return fail(ErrorKind::kCorruptData, "a journal line does not describe a segment"); };
  if (!json.is_object() || !json.contains("index") || !json.contains("values") || !json.contains("digests"))
    return malformed();
  out.record.index = json["index"].get<uint64_t>();
  out.record.file = json["file"].get<std::string>();
  out.record.bytes = json["bytes"].get<uint64_t>();
  for (const Json& entry : json["values"]) {
    if (!entry.is_array() || entry.size() < 3) return malformed();
    StoredValue value{entry[0].get<std::string>(), entry[1].get<uint64_t>(), entry[2].get<uint64_t>()};
    if (entry.size() > 3) {
      value.inline_value = from_hex(entry[3].get_ref<const std::string&>());
      if (!value.inline_value) return malformed();
    }
    out.record.values.push_back(std::move(value));
  }
  out.digests = json["digests"].get<std::vector<uint64_t>>();
  return out;
}

std::string line_text(const Json& value) {
  const std::string body = value.dump();
  return fmt::format("{:08x} {}\n", crc32c(as_bytes(body)), body);
}

/// The JSON of a whole, undamaged line; nothing otherwise.
std::optional<Json> read_line(std::string_view line) {
  if (line.size() < 10 || line[8] != ' ') return std::nullopt;
  uint32_t crc = 0;
  auto [end, error] = std::from_chars(line.data(), line.data() + 8, crc, 16);
  if (error != std::errc() || end != line.data() + 8 || crc != crc32c(as_bytes(line.substr(9)))) return std::nullopt;
  auto json = parse_json(line.substr(9), "journal", {.max_bytes = kMaxJournalBytes});
  if (!json) return std::nullopt;
  return std::move(*json);
}

Result<> same_identity(const Identity& recorded, const Identity& wanted) {
  std::string differences;
  for (const auto& [name, value] : wanted.items()) {
    const Json before = recorded.contains(name) ? recorded[name] : Json();
    if (before == value) continue;
    const auto shown = [](const Json& json) {
      std::string text = json.dump();
      return text.size() > 120 ? text.substr(0, 117) + "..." : text;
    };
    differences += fmt::format("\n  {}: {} before, {} now", name, printable(shown(before)), printable(shown(value)));
  }
  if (differences.empty()) return {};
  return fail(ErrorKind::kInvalidArgument,
              "an unfinished conversion is there, but of something else:{}\n"
              "repeat it as it was to continue it, or pass --overwrite to start over", differences);
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::create(Storage& storage, const std::string& path, const Identity& identity,
                                                 bool sync) {
  MAXPORT_ASSIGN_OR_RETURN(auto file, storage.create(path));
  std::unique_ptr<Journal> journal(new Journal(std::move(file), 0, sync));
  MAXPORT_RETURN_IF_ERROR(journal->append_line(identity));
  return journal;
}

Result<std::unique_ptr<Journal>> Journal::resume(Storage& storage, const std::string& path, const Identity& identity,
                                                 bool sync) {
  MAXPORT_ASSIGN_OR_RETURN(const std::string text, storage.read_text(path, kMaxJournalBytes));
  uint64_t good = 0;
  std::vector<engine::SegmentResult> finished;
  bool first = true;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto line = read_line(std::string_view(text).substr(begin, end - begin));
    if (!line) break;
    if (first) {
      MAXPORT_RETURN_IF_ERROR(same_identity(*line, identity));
    } else {
      MAXPORT_ASSIGN_OR_RETURN(auto segment, segment_from(*line));
      finished.push_back(std::move(segment));
    }
    first = false;
    good = end + 1;
  }
  if (first)
    return fail(ErrorKind::kCorruptData, "{}: the journal of the unfinished conversion cannot be read; pass --overwrite to start over",
                printable(path));
  MAXPORT_ASSIGN_OR_RETURN(auto file, storage.create(path, false));
  std::unique_ptr<Journal> journal(new Journal(std::move(file), good, sync));
  journal->finished_ = std::move(finished);
  return journal;
}

Result<> Journal::append_line(const Json& value) {
  const std::string text = line_text(value);
  const std::lock_guard lock(mutex_);
  MAXPORT_RETURN_IF_ERROR(file_->write_at(size_, as_bytes(text)));
  size_ += text.size();
  return sync_ ? file_->sync() : Result<>();
}

Result<> Journal::append(const engine::SegmentResult& segment) { return append_line(to_json(segment)); }

}  // namespace maxport::convert
