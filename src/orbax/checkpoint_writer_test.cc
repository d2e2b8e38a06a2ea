#include "orbax/checkpoint_writer.h"

#include <gmock/gmock.h>

#include "orbax/checkpoint.h"
#include "orbax/testing.h"
#include "storage/faulty_storage.h"
#include "storage/memory_storage.h"

namespace maxport::orbax {
namespace {

using testing::HasSubstr;

void expect_small(Storage& storage, const std::string& path) {
  auto checkpoint = Checkpoint::open(storage, path);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  const CheckpointLeaf* kernel = (*checkpoint)->find("params.kernel");
  ASSERT_NE(kernel, nullptr);
  Bytes out(96);
  auto status = (*(*checkpoint)->tensor(*kernel))->read(Box::whole(kernel->shape), kernel->dtype, out);
  ASSERT_TRUE(status) << status.error().message();
  EXPECT_EQ(out, kernel_bytes());
  EXPECT_EQ(std::get<int64_t>(*(*checkpoint)->scalar(*(*checkpoint)->find("step"))), 12);
  EXPECT_EQ(std::get<double>(*(*checkpoint)->scalar(*(*checkpoint)->find("rate"))), 0.5);
  EXPECT_EQ(*(*checkpoint)->text(*(*checkpoint)->find("note")), "hello");
  EXPECT_EQ((*checkpoint)->find("opt_state")->kind, LeafKind::kEmpty);
  EXPECT_EQ((*checkpoint)->leaves().size(), 5u);
}

std::vector<std::string> names_in(Storage& storage, const std::string& path) {
  std::vector<std::string> names;
  const auto entries = storage.list(path);
  EXPECT_TRUE(entries) << entries.error().message();
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  return names;
}

TEST(CheckpointWriter, WritesWhatTheReaderReadsInEveryLayout) {
  for (const CheckpointWriterOptions& options : all_layouts()) {
    MemoryStorage storage;
    auto status = write_small(storage, "out", options);
    ASSERT_TRUE(status) << status.error().message();
    expect_small(storage, "out");
    auto checkpoint = *Checkpoint::open(storage, "out");
    EXPECT_EQ(checkpoint->uses_ocdbt(), options.use_ocdbt);
    EXPECT_EQ(checkpoint->find("params.kernel")->value_type, options.devices ? "jax.Array" : "np.ndarray");
    EXPECT_THAT(names_in(storage, "out"), testing::ElementsAre("0"));
    EXPECT_THAT(names_in(storage, "out/0"), testing::ElementsAre("_CHECKPOINT_METADATA", "commit_success.txt", "items"));
  }
}

TEST(CheckpointWriter, RecordsShardingsForDevices) {
  MemoryStorage storage;
  CheckpointWriterOptions options;
  options.devices = 4;
  ASSERT_TRUE(write_small(storage, "out", options));
  auto sharding = parse_sharding(*storage.read_text("out/0/items/_sharding"), "x");
  ASSERT_TRUE(sharding);
  ASSERT_EQ(sharding->size(), 1u);
  EXPECT_EQ(sharding->at("params.kernel")["partition_spec"], Json::parse(R"([null,"checkpoint_sharding_axis"])"));
  auto arrays = parse_array_metadata(*storage.read_text("out/0/items/array_metadatas/process_0"), "x");
  ASSERT_TRUE(arrays);
  EXPECT_EQ((*arrays)[0].write_shape, (Shape{6, 1}));
  EXPECT_EQ((*arrays)[0].chunk_shape, (Shape{4, 4}));
}

TEST(CheckpointWriter, KeepsExtraFilesAndMetadata) {
  MemoryStorage storage;
  CheckpointWriterOptions options;
  options.custom_metadata = {{"scan_layers", false}};
  options.commit_timestamp_nsecs = 99;
  auto writer = *CheckpointWriter::create(storage, "out", 7, small_leaves(options), options);
  ASSERT_TRUE(put_kernel(*writer, kernel_spec(options), kernel_bytes()));
  for (const char* name : {"_METADATA", "manifest.ocdbt", "a/b", "..", "", "checkpoint", "d", "ocdbt.process_1", "commit_success.txt"})
    EXPECT_EQ(writer->add_item_file(name, "").error().kind(), ErrorKind::kInvalidArgument) << name;
  ASSERT_TRUE(writer->add_item_file("digests.json", "{}"));
  ASSERT_TRUE(writer->add_step_file("source.json", "[]"));
  ASSERT_TRUE(writer->commit());
  EXPECT_EQ(*storage.read_text("out/7/items/digests.json"), "{}");
  EXPECT_EQ(*storage.read_text("out/7/source.json"), "[]");
  EXPECT_EQ(*storage.read_text("out/7/commit_success.txt"), "Checkpoint commit was successful to 7");
  auto checkpoint = *Checkpoint::open(storage, "out");
  EXPECT_EQ(checkpoint->step_metadata().custom_metadata, (Json{{"scan_layers", false}}));
  EXPECT_EQ(checkpoint->step_metadata().commit_timestamp_nsecs, 99);
  EXPECT_EQ(checkpoint->path().step, 7);
}

TEST(CheckpointWriter, NeverOverwritesAStep) {
  MemoryStorage storage;
  ASSERT_TRUE(write_small(storage, "out"));
  auto again = write_small(storage, "out");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(again.error().message(), HasSubstr("out/0 exists already and is not overwritten"));
  expect_small(storage, "out");
  EXPECT_THAT(names_in(storage, "out"), testing::ElementsAre("0"));

  // Not even where it is to be replaced, unless the caller moved it away.
  CheckpointWriterOptions replacing;
  replacing.replace = true;
  EXPECT_FALSE(write_small(storage, "out", replacing));
  expect_small(storage, "out/0");
  ASSERT_TRUE(storage.rename("out/0", "old"));
  EXPECT_TRUE(write_small(storage, "out", replacing));

  // One that appears meanwhile stays as well.
  auto writer = *CheckpointWriter::create(storage, "out", 1, small_leaves({}), {});
  ASSERT_TRUE(put_kernel(*writer, kernel_spec({}), kernel_bytes()));
  ASSERT_TRUE(storage.make_directories("out/1"));
  ASSERT_TRUE(storage.write_text("out/1/mine", "x"));
  EXPECT_FALSE(writer->commit());
  EXPECT_THAT(names_in(storage, "out/1"), testing::ElementsAre("mine"));
}

TEST(CheckpointWriter, ClearsOrResumesWhatAnEarlierRunLeft) {
  for (const bool resume : {false, true}) {
    MemoryStorage storage;
    {
      auto writer = *CheckpointWriter::create(storage, "out", 0, small_leaves({}), {});
      ASSERT_TRUE(storage.write_text(join_path(writer->temporary_directory(), "journal"), "x"));
      ASSERT_TRUE(put_kernel(*writer, kernel_spec({}), kernel_bytes(100)));
    }
    EXPECT_THAT(names_in(storage, "out"), testing::ElementsAre("0.orbax-checkpoint-tmp"));
    CheckpointWriterOptions options;
    options.resume = resume;
    ASSERT_TRUE(write_small(storage, "out", options));
    expect_small(storage, "out");
    EXPECT_EQ(*storage.kind("out/0/journal") == EntryKind::kFile, resume);
  }
}

TEST(CheckpointWriter, DiscardsEverythingWhenTold) {
  MemoryStorage storage;
  auto writer = *CheckpointWriter::create(storage, "out", 0, small_leaves({}), {});
  ASSERT_TRUE(put_kernel(*writer, kernel_spec({}), kernel_bytes()));
  ASSERT_TRUE(writer->discard());
  EXPECT_THAT(names_in(storage, "out"), testing::IsEmpty());
}

TEST(CheckpointWriter, RefusesLeavesThatReadersCouldNotRestoreBeforeWritingAnything) {
  const CheckpointWriterOptions plain;
  const zarr::ArraySpec spec = kernel_spec(plain);
  const zarr::ArraySpec v2 =
      *zarr::make_array_spec(zarr::Version::kV2, DType::kFloat32, {1}, {1}, zarr::Compression::kZstd);
  const zarr::ArraySpec empty =
      *zarr::make_array_spec(zarr::Version::kV3, DType::kFloat32, {0, 3}, {1, 1}, zarr::Compression::kZstd);
  struct Case {
    std::vector<WriteLeaf> leaves;
    const char* text;
    bool ocdbt = true;
  };
  const std::string numpy(kNumpyType);
  const Case cases[] = {
      {{}, "at least one leaf"},
      {{{{{"a.b"}}, numpy, spec}, {{{"a"}, {"b"}}, numpy, spec}}, "would both be stored as \"a.b\""},
      {{{{{"a"}}, numpy, spec}, {{{"a"}, {"b"}}, numpy, spec}}, "lies below another leaf"},
      {{{{{"a"}, {"1", true}}, numpy, spec}}, "index 0 is missing"},
      {{{{{"p"}, {"a"}}, numpy, empty}}, "leaf \"p.a\": shape [0, 3] has no elements"},
      {{{{{"a"}}, numpy, v2}}, "leaf \"a\": its layout is of another Zarr version"},
      {{{{{"a"}}, "array", spec}}, "recorded as \"array\", which is no type for it; expected np.ndarray"},
      {{{{{"a"}}, numpy, int64_t{1}}}, "expected scalar"},
      {{{{{"a"}}, std::string(kScalarType), EmptyLeaf{}}}, "which is no type for it"},
      {{{{{"a"}}, std::string(kJaxType), spec}}, "no devices are given"},
      {{{{{"a/b"}}, std::string(kStringType), std::string("x")}}, "must not contain \"/\" or \"~\""},
      {{{{{"a/b"}}, numpy, spec}}, "no directory can have this name; use OCDBT", false},
      {{{{{"a\\b"}}, numpy, spec}}, "no directory can have this name; use OCDBT", false},
      {{{{{""}, {""}, {""}}, numpy, spec}}, "no directory can have this name; use OCDBT", false},
      {{{{{"_METADATA"}}, numpy, spec}}, "no directory can have this name; use OCDBT", false},
  };
  for (const Case& c : cases) {
    MemoryStorage storage;
    CheckpointWriterOptions options;
    options.use_ocdbt = c.ocdbt;
    auto writer = CheckpointWriter::create(storage, "out", 0, c.leaves, options);
    ASSERT_FALSE(writer) << c.text;
    EXPECT_EQ(writer.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(writer.error().message(), HasSubstr(c.text));
    EXPECT_EQ(*storage.kind("out"), std::nullopt);
  }
}

TEST(CheckpointWriter, RefusesImpossibleOptions) {
  MemoryStorage storage;
  for (const char* item : {"", "a/b", "..", "metrics", "AUTO", "x.orbax-checkpoint-tmp", "_METADATA"}) {
    CheckpointWriterOptions options;
    options.item = item;
    EXPECT_FALSE(CheckpointWriter::create(storage, "out", 0, small_leaves({}), options)) << item;
  }
  CheckpointWriterOptions options;
  options.devices = 0;
  EXPECT_FALSE(CheckpointWriter::create(storage, "out", 0, small_leaves({}), options));
  options = {};
  options.custom_metadata = Json::array();
  EXPECT_FALSE(CheckpointWriter::create(storage, "out", 0, small_leaves({}), options));
  EXPECT_FALSE(CheckpointWriter::create(storage, "out", -1, small_leaves({}), {}));
}

TEST(CheckpointWriter, LeavesNoStepOrACompleteOneWhereverItIsStopped) {
  for (const CheckpointWriterOptions& options : all_layouts()) {
    MemoryStorage whole;
    FaultyStorage counting(whole);
    ASSERT_TRUE(write_small(counting, "out", options));
    for (uint64_t changes = 0; changes <= counting.changes(); ++changes) {
      MemoryStorage storage;
      FaultyStorage stopped(storage);
      stopped.stop_changes_after(changes);
      auto status = write_small(stopped, "out", options);
      EXPECT_EQ(status.has_value(), changes == counting.changes()) << changes;
      if (*storage.kind("out/0") == EntryKind::kDirectory) expect_small(storage, "out");
      // A later run gets through, whatever is left.
      if (*storage.kind("out/0") != EntryKind::kDirectory) {
        auto again = write_small(storage, "out", options);
        ASSERT_TRUE(again) << changes << again.error().message();
        expect_small(storage, "out");
      }
    }
  }
}

TEST(CheckpointWriter, LeavesNoStepOrACompleteOneWhenThePowerFails) {
  for (const CheckpointWriterOptions& options : all_layouts()) {
    MemoryStorage whole;
    FaultyStorage counting(whole);
    ASSERT_TRUE(write_small(counting, "deep/down/out", options));
    const auto survived = whole.after_power_loss();
    expect_small(*survived, "deep/down/out");
    for (uint64_t changes = 0; changes <= counting.changes(); ++changes) {
      MemoryStorage storage;
      FaultyStorage stopped(storage);
      stopped.stop_changes_after(changes);
      (void)write_small(stopped, "deep/down/out", options);
      const auto after = storage.after_power_loss();
      if (*after->kind("deep/down/out/0") == EntryKind::kDirectory) expect_small(*after, "deep/down/out");
    }
  }
}

TEST(CheckpointWriter, ReportsAFullDiskAndKeepsTheTemporaryDirectory) {
  MemoryStorage storage;
  FaultyStorage full(storage);
  full.add({.operation = Operation::kWrite, .error_number = ENOSPC, .path_part = "_METADATA", .from_then_on = true});
  auto status = write_small(full, "out");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("committing the checkpoint out/0: "));
  EXPECT_THAT(names_in(storage, "out"), testing::ElementsAre("0.orbax-checkpoint-tmp"));
}

TEST(LayOut, GivesTensorsTheirSpecsAndNamesTheLeafThatHasNone) {
  const Leaf leaves[] = {tensor_leaf({{"t"}}, *memory_tensor(DType::kInt8, {2}, Bytes(2))), int_leaf({{"i"}}, 7)};
  auto resolved = *resolve_leaves(LeafHandlerRegistry::standard(), leaves);
  auto placed = lay_out(resolved, [](const ResolvedLeaf&) { return Result<zarr::ArraySpec>(kernel_spec({})); });
  ASSERT_TRUE(placed);
  EXPECT_EQ(*(*placed)[0].array(), kernel_spec({}));
  EXPECT_EQ(std::get<int64_t>((*placed)[1].content), 7);
  auto refused = lay_out(
      resolved, [](const ResolvedLeaf&) -> Result<zarr::ArraySpec> { return fail(ErrorKind::kUnsupported, "no"); });
  EXPECT_EQ(refused.error().message(), "leaf \"t\": no");
}

}  // namespace
}  // namespace maxport::orbax
