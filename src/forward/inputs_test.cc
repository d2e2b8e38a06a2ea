#include "forward/inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "safetensors/writer.h"
#include "storage/memory_storage.h"

namespace maxport::forward {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Ids, AreReadFromTextWithSequences) {
  const auto batch = parse_ids("1, 2,3; 4\n[5 6]");
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->ids, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(batch->positions, ElementsAre(0, 1, 2, 0, 0, 1));
  ASSERT_EQ(batch->sequences.size(), 3u);
  EXPECT_EQ(batch->sequences[2].begin, 4);
  EXPECT_EQ(batch->sequences[2].length, 2);
}

TEST(Ids, ThatAreNoneAreNamed) {
  for (const char* text : {"", " ; ", "1,x", "-3", "1.5", "99999999999"}) {
    const auto batch = parse_ids(text);
    ASSERT_FALSE(batch) << text;
    EXPECT_EQ(batch.error().kind(), ErrorKind::kInvalidArgument) << text;
  }
}

TEST(GoldenFile, OfSafetensorsHoldsTheBatchAndItsLogits) {
  const auto golden = read_golden(local_storage(), MAXPORT_TEST_DATA "/goldens/llama3.1-8b/logits.safetensors");
  ASSERT_TRUE(golden) << golden.error().message();
  EXPECT_EQ(golden->batch.sequences.size(), 2u);
  EXPECT_EQ(golden->batch.tokens(), 24);
  ASSERT_TRUE(golden->logits);
  EXPECT_EQ(golden->logits->rows, 24);
  EXPECT_EQ(golden->logits->cols, 160);
}

class GoldenLines : public ::testing::Test {
 protected:
  Result<Golden> read(std::string_view text) {
    EXPECT_TRUE(disk_.write_text("golden.jsonl", text));
    return read_golden(disk_, "golden.jsonl");
  }
  MemoryStorage disk_;
};

TEST_F(GoldenLines, AreThoseOfMaxTextsChecker) {
  const auto golden = read(
      "{\"prompt\": \"a\", \"tokens\": [3, 4], \"logits\": [[1, 2.5], [3, 4]]}\n\n"
      "{\"prompt\": \"b\", \"tokens\": [5], \"logits\": [[-1, 0]]}");
  ASSERT_TRUE(golden) << golden.error().message();
  EXPECT_THAT(golden->batch.ids, ElementsAre(3, 4, 5));
  ASSERT_TRUE(golden->logits);
  EXPECT_THAT(golden->logits->data, ElementsAre(1, 2.5, 3, 4, -1, 0));
}

TEST_F(GoldenLines, MayHoldIdsAlone) {
  const auto golden = read("{\"tokens\": [3, 4]}");
  ASSERT_TRUE(golden);
  EXPECT_FALSE(golden->logits);
}

TEST(GoldenFile, ThatIsWrittenReadsBackTheSame) {
  for (const char* ids : {"1,2;3,4;5,6", "1,2,3;4;5,6", "7"}) {
    MemoryStorage disk;
    const Batch batch = parse_ids(ids).value();
    Matrix logits(batch.tokens(), 5);
    for (size_t i = 0; i < logits.data.size(); ++i) logits.data[i] = static_cast<float>(i) / 3;
    const auto written = write_golden(disk, "a.safetensors", batch, logits);
    ASSERT_TRUE(written) << written.error().message();
    const auto golden = read_golden(disk, "a.safetensors");
    ASSERT_TRUE(golden) << golden.error().message();
    EXPECT_EQ(golden->batch.ids, batch.ids);
    EXPECT_EQ(golden->batch.positions, batch.positions);
    EXPECT_EQ(golden->logits.value().data, logits.data);
    EXPECT_EQ(disk.kind("a.safetensors.partial").value(), std::nullopt);
  }
}

TEST(GoldenFile, WhoseLengthsDoNotAddUpIsRefused) {
  for (const std::vector<int32_t>& lengths : {std::vector<int32_t>{1, 1}, {2, 2}, {3, 0}, {-1, 4}}) {
    MemoryStorage disk;
    const std::vector<safetensors::TensorSpec> specs = {{"input_ids", DType::kInt32, {3}},
                                                        {"lengths", DType::kInt32, {2}}};
    auto file = safetensors::FileWriter::create(disk, "a.safetensors", safetensors::layout_file(specs).value()).value();
    const std::vector<int32_t> ids = {1, 2, 3};
    ASSERT_TRUE(file->write(0, 0, std::as_bytes(std::span(ids))));
    ASSERT_TRUE(file->write(1, 0, std::as_bytes(std::span(lengths))));
    ASSERT_TRUE(file->finish());
    const auto golden = read_golden(disk, "a.safetensors");
    ASSERT_FALSE(golden);
    EXPECT_EQ(golden.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(golden.error().message(), HasSubstr("lengths"));
  }
}

TEST_F(GoldenLines, ThatDoNotFitAreNamedWithTheirLine) {
  const auto wrong = read("{\"tokens\": [3], \"logits\": [[1, 2]]}\n{\"tokens\": [3, 4], \"logits\": [[1, 2]]}");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), HasSubstr("golden.jsonl, line 2"));
  EXPECT_FALSE(read("{\"tokens\": [3, 4], \"logits\": [[1, 2], [1]]}"));
  EXPECT_FALSE(read("{\"tokens\": [-3]}"));
  EXPECT_FALSE(read("{\"tokens\": []}"));
  EXPECT_FALSE(read("{\"tokens\": [3], \"logits\": [[1]]}\n{\"tokens\": [3]}"));
  EXPECT_FALSE(read("[1]"));
}

}  // namespace
}  // namespace maxport::forward
