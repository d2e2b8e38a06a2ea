#include "safetensors/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "safetensors/file.h"
#include "storage/faulty_storage.h"
#include "storage/memory_storage.h"

namespace maxport::safetensors {
namespace {

using testing::HasSubstr;

TEST(LayoutFile, IsWhatTheReferenceLibraryWrites) {
  const std::vector<TensorSpec> specs = {
      {"u", DType::kUint8, {3}}, {"b", DType::kFloat32, {2, 1}}, {"a\"\n", DType::kBfloat16, {}}};
  auto layout = layout_file(specs);
  ASSERT_TRUE(layout) << layout.error().message();
  EXPECT_EQ(layout->header.substr(8),
            R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
            R"("a\"\n":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
            R"("u":{"dtype":"U8","shape":[3],"data_offsets":[10,13]}} )");
  EXPECT_EQ(layout->header.size() % 8, 0u);
  EXPECT_EQ(load_le<uint64_t>(as_bytes(layout->header).data()), layout->header.size() - 8);
  EXPECT_EQ(layout->file_size, layout->header.size() + 13);
  EXPECT_EQ(layout->tensors[0].begin, layout->header.size() + 10);
  EXPECT_EQ(layout->tensors[1].begin, layout->header.size());
}

TEST(LayoutFile, BeginsTheDataAtAMultipleOfEightWithAsFewSpacesAsThatTakes) {
  for (size_t length = 1; length <= 16; ++length) {
    const std::vector<TensorSpec> specs = {{std::string(length, 'n'), DType::kUint8, {3}}};
    const auto layout = layout_file(specs);
    ASSERT_TRUE(layout);
    EXPECT_EQ(layout->header.size() % 8, 0u) << length;
    EXPECT_GT(layout->header.find_last_not_of(' ') + 8, layout->header.size() - 1) << length;
  }
}

TEST(LayoutFile, KeepsTheGivenOrderWhenAskedTo) {
  const std::vector<TensorSpec> specs = {{"u", DType::kUint8, {3}}, {"b", DType::kFloat32, {2}}};
  auto layout = layout_file(specs, Order::kAsGiven, {});
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->tensors[0].begin, layout->header.size());
  EXPECT_EQ(layout->tensors[1].begin, layout->header.size() + 3);
  EXPECT_THAT(layout->header, testing::Not(HasSubstr("__metadata__")));
}

TEST(LayoutFile, RefusesWhatReadersWouldRefuse) {
  const auto refusal = [](std::vector<TensorSpec> specs) { return layout_file(specs).error(); };
  EXPECT_THAT(refusal({{"__metadata__", DType::kUint8, {1}}}).message(), HasSubstr("cannot be called __metadata__"));
  EXPECT_THAT(refusal({{"a", DType::kUint8, {1}}, {"a", DType::kUint8, {2}}}).message(),
              HasSubstr("tensor \"a\" is to be written twice"));
  EXPECT_THAT(refusal({{"a\xff", DType::kUint8, {1}}}).message(), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(refusal({{"a", DType::kFloat64, {INT64_MAX}}}).message(), HasSubstr("tensor \"a\": the size"));
  EXPECT_EQ(refusal({{"a", DType::kComplex128, {1}}}).kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(refusal({{"a", DType::kUint8, {INT64_MAX}}, {"b", DType::kUint8, {INT64_MAX}}}).kind(),
            ErrorKind::kInvalidArgument);
}

TEST(LayoutFile, RefusesAHeaderAboveTheLimitOfTheFormat) {
  const std::vector<TensorSpec> specs = {{std::string(kMaxHeaderBytes - 80, 'a'), DType::kUint8, {1}}};
  auto layout = layout_file(specs);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(layout.error().message(), HasSubstr("write them to more files"));
}

TEST(HeaderBytesOf, IsNeverTooLow) {
  for (const TensorSpec& spec :
       {TensorSpec{"a", DType::kUint8, {}}, TensorSpec{"\x01\"x", DType::kFloat8E4m3fnuz, {}},
        TensorSpec{"w", DType::kUint8, Shape(32, 1)}, TensorSpec{"w", DType::kUint8, {1 << 30}}}) {
    auto layout = layout_file(std::span(&spec, 1), Order::kAsGiven, {});
    ASSERT_TRUE(layout);
    EXPECT_GE(header_bytes_of(spec) + 2, layout->header.find_last_not_of(' ') + 1 - 8);
  }
}

TEST(FileWriter, TakesPiecesFromSeveralThreadsInAnyOrder) {
  MemoryStorage storage;
  const std::vector<TensorSpec> specs = {
      {"x/../y", DType::kUint8, {4096}}, {"", DType::kInt16, {512, 2}}, {"z", DType::kFloat32, {0, 3}}};
  auto writer = FileWriter::create(storage, "/m.safetensors", layout_file(specs).value());
  ASSERT_TRUE(writer) << writer.error().message();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int piece = 63; piece >= 0; --piece) {
        if (piece % 4 != t) continue;
        const std::string bytes(64, static_cast<char>('0' + piece));
        EXPECT_TRUE((*writer)->write(0, static_cast<uint64_t>(piece) * 64, as_bytes(bytes)));
        if (piece >= 32) continue;
        EXPECT_TRUE((*writer)->write(1, static_cast<uint64_t>(piece) * 64, as_bytes(bytes)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE((*writer)->finish());

  auto file = File::open(storage, "/m.safetensors");
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ((*file)->metadata(), kTorchMetadata);
  for (size_t i = 0; i < 2; ++i) {
    const TensorInfo* tensor = (*file)->find(specs[i].name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->shape, specs[i].shape);
    EXPECT_EQ(tensor->dtype, specs[i].dtype);
    std::string bytes(tensor->byte_size(), ' ');
    ASSERT_TRUE((*file)->read(*tensor, 0, std::as_writable_bytes(std::span(bytes))));
    for (size_t k = 0; k < bytes.size(); ++k) ASSERT_EQ(bytes[k], static_cast<char>('0' + k / 64));
  }
  EXPECT_EQ((*file)->find("z")->byte_size(), 0u);
}

TEST(FileWriter, RefusesBytesOutsideTheTensor) {
  MemoryStorage storage;
  const std::vector<TensorSpec> specs = {{"a", DType::kUint8, {4}}, {"b", DType::kUint8, {4}}};
  auto writer = FileWriter::create(storage, "/m.safetensors", layout_file(specs).value()).value();
  EXPECT_TRUE(writer->write(0, 4, {}));
  for (uint64_t offset : {uint64_t{3}, uint64_t{5}, ~uint64_t{0}}) {
    auto written = writer->write(0, offset, as_bytes("xy"));
    ASSERT_FALSE(written);
    EXPECT_THAT(written.error().message(), HasSubstr("tensor \"a\": 2 bytes given"));
  }
}

TEST(FileWriter, GoesOnWithAFileThatAnEarlierRunBegan) {
  MemoryStorage storage;
  const std::vector<TensorSpec> specs = {{"a", DType::kUint8, {2}}, {"b", DType::kUint8, {2}}};
  const Layout layout = layout_file(specs).value();
  ASSERT_TRUE(FileWriter::create(storage, "/m.safetensors", layout).value()->write(0, 0, as_bytes("AA")));
  auto writer = FileWriter::resume(storage, "/m.safetensors", layout).value();
  ASSERT_TRUE(writer->write(1, 0, as_bytes("BB")));
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(storage.read_text("/m.safetensors").value(), layout.header + "AABB");
}

TEST(FileWriter, ReportsAFullDiskWithTheTensor) {
  MemoryStorage memory;
  FaultyStorage storage(memory);
  const std::vector<TensorSpec> specs = {{"a", DType::kUint8, {4}}};
  auto writer = FileWriter::create(storage, "/m.safetensors", layout_file(specs).value()).value();
  storage.add({.operation = Operation::kWrite, .error_number = ENOSPC});
  auto written = writer->write(0, 0, as_bytes("abcd"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(written.error().message(),
              testing::AllOf(HasSubstr("writing tensor \"a\""), HasSubstr("/m.safetensors")));
}

}  // namespace
}  // namespace maxport::safetensors
