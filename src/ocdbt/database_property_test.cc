// Whatever is written with whatever limits, the reader returns the same.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "ocdbt/database.h"
#include "storage/memory_storage.h"

namespace maxport::ocdbt {
namespace {

using Values = std::map<std::string, std::string>;

/// Keys of few letters, so that they share beginnings and are each other's beginnings; values of very different sizes.
rc::Gen<Values> any_values() {
  const auto key = rc::gen::container<std::string>(rc::gen::element('\0', 'a', 'b', '/', '\xff'));
  const auto value = rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 3000), rc::gen::arbitrary<char>()),
                                  [](const auto& pair) { return std::string(pair.first, pair.second); });
  return rc::gen::container<Values>(key, value);
}

void write(Storage& storage, const Values& values) {
  WriterOptions options;
  options.max_decoded_node_bytes = *rc::gen::element(0u, 1u, 50u, 200u, 1000u, 100'000'000u);
  options.max_inline_value_bytes = *rc::gen::element(0u, 10u, 1024u, UINT32_MAX);
  if (*rc::gen::arbitrary<bool>()) options.zstd_level.reset();
  const auto writer = create_database(storage, "db", options);
  const auto segments = *rc::gen::inRange<uint64_t>(1, 5);
  std::vector<std::unique_ptr<Segment>> open;
  for (uint64_t i = 0; i < segments; ++i) open.push_back(*writer->start_segment(i));
  for (const auto& [key, value] : values)
    RC_ASSERT(open[*rc::gen::inRange<size_t>(0, segments)]->put(key, as_bytes(value)).has_value());
  for (const auto& segment : open) RC_ASSERT(segment->finish(false).has_value());
  RC_ASSERT(writer->finish(false).has_value());
}

RC_GTEST_PROP(Database, ReturnsWhatWasPut, ()) {
  const Values values = *any_values();
  MemoryStorage storage;
  write(storage, values);
  const auto reader = *open_database(storage, "db");
  for (const auto& [key, value] : values) {
    const auto read = *reader->read(key);
    RC_ASSERT(read.has_value());
    RC_ASSERT(as_text(*read) == value);
  }
  const std::string other = *rc::gen::container<std::string>(rc::gen::element('\0', 'a', 'b', '/', '\xff'));
  RC_ASSERT(reader->read(other)->has_value() == values.contains(other));
}

RC_GTEST_PROP(Database, ListsByPrefixInOrder, ()) {
  const Values values = *any_values();
  MemoryStorage storage;
  write(storage, values);
  const auto reader = *open_database(storage, "db");
  const std::string prefix = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '/'));
  for (const std::string& start : {std::string(), prefix.substr(0, 1), prefix.substr(0, 2), prefix}) {
    std::vector<std::string> listed, expected;
    RC_ASSERT(reader
                  ->list(start,
                         [&](std::string_view key, const ValueLocation& where) -> Result<> {
                           listed.emplace_back(key);
                           RC_ASSERT(where.length == values.at(std::string(key)).size());
                           return {};
                         })
                  .has_value());
    for (const auto& [key, value] : values)
      if (key.starts_with(start)) expected.push_back(key);
    RC_ASSERT(listed == expected);
  }
}

}  // namespace
}  // namespace maxport::ocdbt
