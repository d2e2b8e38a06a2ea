#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ocdbt/database.h"
#include "ocdbt/manifest.h"
#include "storage/faulty_storage.h"
#include "storage/memory_storage.h"

namespace maxport::ocdbt {
namespace {

using testing::HasSubstr;
using Values = std::vector<std::pair<std::string, std::string>>;

const Values kSome = {{"x/zarr.json", "{}"}, {"x/c/0", std::string(3000, 'a')},    {"x/c/1", std::string(700000, 'b')},
                      {"y/zarr.json", "[]"}, {"y/c/0", std::string(2000000, 'c')}, {"empty", ""}};

WriterOptions options() {
  WriterOptions options;
  options.seed = "seed";
  return options;
}

Result<SegmentRecord> write_segment(KeyValueWriter& writer, uint64_t index, const Values& values, bool sync = true) {
  MAXPORT_ASSIGN_OR_RETURN(const auto segment, writer.start_segment(index));
  for (const auto& [key, value] : values) MAXPORT_RETURN_IF_ERROR(segment->put(key, as_bytes(value)));
  return segment->finish(sync);
}

Result<> write_database(Storage& storage, const Values& values, const WriterOptions& with = options()) {
  const auto writer = create_database(storage, "db", with);
  MAXPORT_RETURN_IF_ERROR(write_segment(*writer, 0, Values(values.begin(), values.begin() + values.size() / 2)));
  MAXPORT_RETURN_IF_ERROR(write_segment(*writer, 1, Values(values.begin() + values.size() / 2, values.end())));
  return writer->finish(true);
}

void expect_holds(Storage& storage, const Values& values) {
  auto reader = open_database(storage, "db");
  ASSERT_TRUE(reader) << reader.error().message();
  for (const auto& [key, value] : values) {
    const auto read = (*reader)->read(key);
    ASSERT_TRUE(read) << read.error().message();
    ASSERT_TRUE(*read) << key;
    EXPECT_EQ(as_text(**read), value);
  }
  std::vector<std::string> keys, expected;
  ASSERT_TRUE((*reader)->list("", [&](std::string_view key, const ValueLocation&) -> Result<> {
    keys.emplace_back(key);
    return {};
  }));
  for (const auto& [key, value] : values) expected.push_back(key);
  std::ranges::sort(expected);
  EXPECT_EQ(keys, expected);
}

/// All files below a folder.
std::map<std::string, std::string> files(Storage& storage, const std::string& folder) {
  std::map<std::string, std::string> found;
  for (const std::vector<DirectoryEntry> entries = *storage.list(folder); const DirectoryEntry& entry : entries) {
    const std::string path = join_path(folder, entry.name);
    if (entry.kind == EntryKind::kDirectory)
      found.merge(files(storage, path));
    else
      found[path] = *storage.read_text(path);
  }
  return found;
}

TEST(DatabaseWriter, WritesWhatTheReaderReads) {
  for (const uint32_t node_bytes : {0u, 1u, 100u, 100'000'000u})
    for (const std::optional<int> level : {std::optional<int>(), std::optional(0)}) {
      MemoryStorage storage;
      WriterOptions with = options();
      with.max_decoded_node_bytes = node_bytes;
      with.zstd_level = level;
      ASSERT_TRUE(write_database(storage, kSome, with));
      expect_holds(storage, kSome);
    }
}

TEST(DatabaseWriter, WritesADatabaseWithoutKeys) {
  MemoryStorage storage;
  ASSERT_TRUE(write_database(storage, {}));
  expect_holds(storage, {});
  EXPECT_EQ(files(storage, "db").size(), 1u);
  const Manifest manifest = *decode_manifest(as_bytes(*storage.read_text("db/manifest.ocdbt")));
  EXPECT_EQ(manifest.files, (std::vector<DataFile>{{"", ""}}));
}

TEST(DatabaseWriter, PutsTheValuesOfASegmentIntoOneFileInOrder) {
  MemoryStorage storage;
  const auto writer = create_database(storage, "db", options());
  const SegmentRecord record =
      *write_segment(*writer, 7, {{"b", std::string(2000, 'b')}, {"small", "s"}, {"a", std::string(3000, 'a')}});
  EXPECT_EQ(record.index, 7u);
  EXPECT_EQ(record.bytes, 5000u);
  EXPECT_EQ(record.file.size(), 34u);
  EXPECT_EQ(*storage.read_text("db/" + record.file), std::string(2000, 'b') + std::string(3000, 'a'));
  EXPECT_EQ(record.values[2].offset, 2000u);
  EXPECT_EQ(as_text(*record.values[1].inline_value), "s");
}

TEST(DatabaseWriter, WritesTheSameWhateverWasExpected) {
  MemoryStorage expected_nothing, expected_much;
  for (MemoryStorage* storage : {&expected_nothing, &expected_much}) {
    const auto writer = create_database(*storage, "db", options());
    const auto segment = *writer->start_segment(0);
    if (storage == &expected_much) segment->expect(100'000'000);
    for (const auto& [key, value] : kSome) ASSERT_TRUE(segment->put(key, as_bytes(value)));
    ASSERT_TRUE(segment->finish(true));
    ASSERT_TRUE(writer->finish(true));
  }
  EXPECT_EQ(files(expected_nothing, "db"), files(expected_much, "db"));
}

TEST(DatabaseWriter, LooksLikeStockWithAProcessFolder) {
  MemoryStorage storage;
  WriterOptions with = options();
  with.data_folder = "ocdbt.process_0/d/";
  ASSERT_TRUE(write_database(storage, kSome, with));
  expect_holds(storage, kSome);
  EXPECT_EQ(storage.list("db/d")->size(), 1u);
  EXPECT_EQ(storage.list("db/ocdbt.process_0/d")->size(), 2u);
}

TEST(DatabaseWriter, KeepsSmallValuesInTheTree) {
  for (const auto& [limit, inline_count] : {std::pair(0u, 1), {2u, 3}, {3000u, 4}, {UINT32_MAX, 5}}) {
    MemoryStorage storage;
    WriterOptions with = options();
    with.max_inline_value_bytes = limit;
    ASSERT_TRUE(write_database(storage, kSome, with));
    expect_holds(storage, kSome);
    const auto reader = *open_database(storage, "db");
    int count = 0;
    for (const auto& [key, value] : kSome) count += (*reader->locate(key))->path.empty() ? 1 : 0;
    EXPECT_EQ(count, inline_count) << limit;
  }
}

TEST(DatabaseWriter, WritesTheSameBytesWhateverThreadWroteWhichSegment) {
  MemoryStorage first, second;
  ASSERT_TRUE(write_database(first, kSome));
  const auto writer = create_database(second, "db", options());
  std::thread one([&] { EXPECT_TRUE(write_segment(*writer, 1, Values(kSome.begin() + 3, kSome.end()))); });
  std::thread zero([&] { EXPECT_TRUE(write_segment(*writer, 0, Values(kSome.begin(), kSome.begin() + 3))); });
  one.join();
  zero.join();
  ASSERT_TRUE(writer->finish(true));
  EXPECT_EQ(files(first, "db"), files(second, "db"));
}

TEST(DatabaseWriter, DependsOnSeedAndStampsOnlyInNamesAndManifest) {
  MemoryStorage storage;
  WriterOptions with = options();
  with.uuid.fill(std::byte{0xab});
  with.commit_time_nanoseconds = 1234;
  ASSERT_TRUE(write_database(storage, kSome, with));
  const Manifest manifest = *decode_manifest(as_bytes(*storage.read_text("db/manifest.ocdbt")));
  EXPECT_EQ(manifest.config.uuid, with.uuid);
  EXPECT_EQ(manifest.config.max_inline_value_bytes, 1024u);
  EXPECT_EQ(manifest.versions[0].commit_time, 1234u);
  EXPECT_EQ(manifest.versions[0].statistics.num_keys, kSome.size());
  EXPECT_EQ(manifest.versions[0].statistics.num_indirect_value_bytes, 3000u + 700000u + 2000000u);

  MemoryStorage other;
  with.seed = "other";
  ASSERT_TRUE(write_database(other, kSome, with));
  for (const auto& [path, content] : files(other, "db"))
    EXPECT_EQ(*storage.kind(path) == EntryKind::kFile, path == "db/manifest.ocdbt") << path;
}

TEST(DatabaseWriter, AdoptsWhatAnEarlierRunFinished) {
  MemoryStorage whole, resumed;
  ASSERT_TRUE(write_database(whole, kSome));
  const SegmentRecord record =
      *write_segment(*create_database(resumed, "db", options()), 0, Values(kSome.begin(), kSome.begin() + 3));
  const auto writer = create_database(resumed, "db", options());
  ASSERT_TRUE(writer->adopt(record));
  ASSERT_TRUE(write_segment(*writer, 1, Values(kSome.begin() + 3, kSome.end())));
  ASSERT_TRUE(writer->finish(true));
  EXPECT_EQ(files(whole, "db"), files(resumed, "db"));
}

TEST(DatabaseWriter, AdoptsASegmentAfterAPowerLoss) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_directories("db"));
  ASSERT_TRUE(storage.sync_directory("/"));
  WriterOptions with = options();
  with.data_folder = "ocdbt.process_0/d/";
  const SegmentRecord record = *write_segment(*create_database(storage, "db", with), 0, kSome);
  const auto after = storage.after_power_loss();
  const auto writer = create_database(*after, "db", with);
  ASSERT_TRUE(writer->adopt(record));
  ASSERT_TRUE(writer->finish(true));
  expect_holds(*after, kSome);
}

TEST(DatabaseWriter, RefusesRecordsThatDoNotFitTheirFiles) {
  MemoryStorage storage;
  const auto writer = create_database(storage, "db", options());
  const SegmentRecord good = *write_segment(*writer, 0, {{"a", std::string(2000, 'a')}, {"b", "b"}});
  const auto failure = [&](auto damage) {
    SegmentRecord record = good;
    record.index = 1;
    damage(record);
    const auto result = create_database(storage, "db", options())->adopt(record);
    return result ? "none" : std::string(error_kind_name(result.error().kind()));
  };
  EXPECT_EQ(failure([](SegmentRecord&) {}), "none");
  EXPECT_EQ(failure([](SegmentRecord& record) { record.bytes += 1; }), "corrupt data");
  EXPECT_EQ(failure([](SegmentRecord& record) { record.values[0].length += 1; }), "corrupt data");
  EXPECT_EQ(failure([](SegmentRecord& record) { record.values[0].offset = UINT64_MAX; }), "corrupt data");
  EXPECT_EQ(failure([](SegmentRecord& record) { record.values[1].length = 2; }), "corrupt data");
  EXPECT_EQ(failure([](SegmentRecord& record) { record.file = "../" + record.file; }), "corrupt data");
  EXPECT_EQ(failure([](SegmentRecord& record) { record.file = ""; }), "corrupt data");
  EXPECT_EQ(failure([](SegmentRecord& record) { record.file += "x"; }), "not found");
}

TEST(DatabaseWriter, RefusesKeysAndSegmentsWrittenTwice) {
  MemoryStorage storage;
  const auto writer = create_database(storage, "db", options());
  const SegmentRecord record = *write_segment(*writer, 0, {{"a", "1"}});
  EXPECT_EQ(writer->start_segment(0).error().kind(), ErrorKind::kInternal);
  EXPECT_EQ(writer->adopt(record).error().kind(), ErrorKind::kInternal);
  ASSERT_TRUE(write_segment(*writer, 1, {{"a", "2"}}));
  const auto result = writer->finish(true);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kInternal);
  EXPECT_THAT(result.error().message(), HasSubstr("the key \"a\" of the database db is written twice"));
  EXPECT_EQ(*storage.kind("db/manifest.ocdbt"), std::nullopt);
}

TEST(DatabaseWriter, TakesKeysUpToTheLimitOfTheFormat) {
  MemoryStorage storage;
  const Values values = {{"", "empty key"}, {std::string("\0\xff", 2), "binary"}, {std::string(65535, 'k'), "long"}};
  ASSERT_TRUE(write_database(storage, values));
  expect_holds(storage, values);
  const auto segment = *create_database(storage, "other", options())->start_segment(0);
  EXPECT_EQ(segment->put(std::string(65536, 'k'), {}).error().kind(), ErrorKind::kInvalidArgument);
}

TEST(DatabaseWriter, RefusesADataFolderOutsideTheDatabase) {
  MemoryStorage storage;
  WriterOptions with = options();
  with.data_folder = "../d/";
  EXPECT_FALSE(create_database(storage, "db", with)->start_segment(0));
}

TEST(DatabaseWriter, HoldsBackLessThanAMebibyteAndWritesInLargePieces) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  const auto writer = create_database(storage, "db", options());
  const auto segment = *writer->start_segment(0);
  const std::string value(2000, 'v');
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(segment->put(std::to_string(i), as_bytes(value)));
  const size_t writes =
      static_cast<size_t>(std::ranges::count(storage.records(), Operation::kWrite, &FaultyStorage::Record::operation));
  EXPECT_LE(writes, 12u);
  const std::string name = memory.list("db/d")->front().name;
  EXPECT_GT((*memory.open("db/d/" + name))->size(), 3000u * 2000u - (1u << 20));
}

TEST(DatabaseWriter, WritesTheManifestLast) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  ASSERT_TRUE(write_database(storage, kSome));
  std::vector<std::string> tail;
  for (const auto& record : storage.records()) {
    const bool manifest = record.path == "db/manifest.ocdbt";
    if (manifest || !tail.empty()) tail.push_back(record.path);
  }
  EXPECT_THAT(tail, testing::ElementsAre("db/manifest.ocdbt", "db/manifest.ocdbt", "db/manifest.ocdbt",
                                         "db/manifest.ocdbt", "db"));
}

TEST(DatabaseWriter, IsWholeOrNoDatabaseAfterAPowerLossAtAnyMoment) {
  uint64_t changes = 0;
  {
    MemoryStorage memory;
    FaultyStorage storage(memory);
    ASSERT_TRUE(write_database(storage, kSome));
    changes = storage.changes();
  }
  int whole = 0;
  for (uint64_t count = 0; count <= changes; ++count) {
    MemoryStorage memory;
    ASSERT_TRUE(memory.make_directories("db"));
    ASSERT_TRUE(memory.sync_directory("/"));
    FaultyStorage storage(memory);
    storage.stop_changes_after(count);
    const bool finished = write_database(storage, kSome).has_value();
    const auto after = memory.after_power_loss();
    const auto reader = open_database(*after, "db");
    if (finished) {
      expect_holds(*after, kSome);
      ++whole;
    } else if (reader) {
      expect_holds(*after, kSome);
    } else {
      EXPECT_EQ(reader.error().kind(), ErrorKind::kNotFound) << reader.error().message();
    }
  }
  EXPECT_EQ(whole, 1);
}

TEST(DatabaseWriter, ReportsAFullDiskWhereverItHappens) {
  for (uint64_t nth = 1; nth <= 5; ++nth) {
    MemoryStorage memory;
    FaultyStorage storage(memory);
    storage.add(
        {.operation = Operation::kWrite, .nth = nth, .error_number = ENOSPC, .from_then_on = true, .bytes_before = 10});
    const auto result = write_database(storage, kSome);
    ASSERT_FALSE(result) << nth;
    EXPECT_EQ(result.error().kind(), ErrorKind::kResourceLimit);
    EXPECT_THAT(result.error().message(), HasSubstr("No space left on device"));
  }
}

TEST(DatabaseWriter, ReportsSyncsAndClosesThatFail) {
  for (const Operation operation : {Operation::kSync, Operation::kClose, Operation::kSyncDirectory, Operation::kCreate})
    for (uint64_t nth = 1; nth <= 4; ++nth) {
      MemoryStorage memory;
      FaultyStorage storage(memory);
      storage.add({.operation = operation, .nth = nth});
      EXPECT_FALSE(write_database(storage, kSome)) << static_cast<int>(operation) << " " << nth;
    }
}

}  // namespace
}  // namespace maxport::ocdbt
