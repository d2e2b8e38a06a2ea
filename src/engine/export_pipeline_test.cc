#include "engine/export_pipeline.h"

#include <gtest/gtest.h>

#include "storage/memory_storage.h"
#include "zarr/chunk.h"
#include "zarr/grid.h"
#include "zarr/metadata.h"

namespace maxport::engine {
namespace {

/// Counts what is written and forgets it.
class CountingWriter : public TensorWriter {
 public:
  Result<> write(uint32_t, uint64_t, ByteSpan bytes) override {
    written_ += bytes.size();
    return {};
  }
  uint64_t written() const { return written_; }

 private:
  std::atomic<uint64_t> written_{0};
};

/// A leaf of 64 MiB whose chunks hold all layers and few rows, as MaxText writes them, so that it is cut anew. Every
/// element is zero.
class CutAnew : public testing::Test {
 protected:
  CutAnew() {
    models::ParameterMap map;
    map.dimensions.set("emb", 1024);
    map.dimensions.set("mlp", 2048);
    map.add(models::LayerGroup{"layers", "{layer}", 0, {{16, 1}}, true}, "wi", "up", "mlp emb -> emb mlp");
    plan_ = *plan::build(map);
    const auto spec = *zarr::make_array_spec(zarr::Version::kV3, DType::kBfloat16, plan_.leaves[0].shape, Shape{64, 16, 2048},
                                             zarr::Compression::kZstd);
    auto writer = create_directory_store(disk_, "/store");
    auto segment = *writer->start_segment(0);
    EXPECT_TRUE(segment->put(zarr::array_key("a", zarr::metadata_key(spec.version)), as_bytes(zarr::metadata_text(spec))));
    zarr::Scratch scratch;
    const ByteSpan chunk = *zarr::encode_chunk(spec, Bytes(static_cast<size_t>(zarr::chunk_bytes(spec))), scratch);
    zarr::for_each_position(zarr::grid_shape(spec), [&](std::span<const int64_t> position) {
      EXPECT_TRUE(segment->put("a/" + zarr::chunk_key(spec, position), chunk));
      return true;
    });
    EXPECT_TRUE(segment->finish(false));
    EXPECT_TRUE(writer->finish(false));
    store_ = open_directory_store(disk_, "/store");
    array_.emplace(*zarr::ArrayReader::open(*store_, "a", zarr::Version::kV3));
    EXPECT_TRUE(disk_.make_directories("/scratch"));
  }

  ExportPipeline pipeline() const { return {plan_, {&*array_}, {DType::kBfloat16}}; }
  ScratchFolder scratch() { return {&disk_, "/scratch"}; }

  MemoryStorage disk_;
  plan::Plan plan_;
  std::unique_ptr<KeyValueReader> store_;
  std::optional<zarr::ArrayReader> array_;
  CountingWriter out_;
};

TEST_F(CutAnew, LeavesNoTemporaryFile) {
  ExportPipeline subject = pipeline();
  EXPECT_EQ(subject.scratch_bytes(), uint64_t{64} << 20);
  bool was_there = false;
  PipelineOptions options;
  options.threads = 2;
  options.finished = [&](const SegmentResult&) -> Result<> {
    was_there |= *disk_.kind("/scratch/tiles-0") == EntryKind::kFile;
    return {};
  };
  const Result<> status = subject.run(out_, scratch(), options);
  ASSERT_TRUE(status) << status.error().message();
  EXPECT_TRUE(was_there);
  EXPECT_EQ(out_.written(), uint64_t{64} << 20);
  EXPECT_TRUE(disk_.list("/scratch")->empty());
}

TEST_F(CutAnew, RemovesAFileThatCameBackAfterAPowerLoss) {
  ExportPipeline subject = pipeline();
  for (uint64_t segment = 0; segment < subject.segment_count(); ++segment) ASSERT_TRUE(subject.adopt(segment));
  (*disk_.create("/scratch/tiles-0"))->close().value();
  ASSERT_EQ(disk_.list("/scratch")->size(), 1u);
  ASSERT_TRUE(subject.run(out_, scratch(), {}));
  EXPECT_EQ(out_.written(), 0u);
  EXPECT_TRUE(disk_.list("/scratch")->empty());
}

}  // namespace
}  // namespace maxport::engine
