// Arrays that TensorStore wrote (tests/data/zarr/tensorstore.json) read as it reads them.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/base64.h"
#include "base/json.h"
#include "zarr/array_reader.h"
#include "zarr/testing.h"

namespace maxport::zarr {
namespace {

Json samples() {
  std::ifstream file(MAXPORT_TEST_DATA "/zarr/tensorstore.json");
  std::stringstream text;
  text << file.rdbuf();
  auto json = parse_json(text.str(), "tensorstore.json");
  EXPECT_TRUE(json);
  return *json;
}

MapStore store_of(const Json& sample) {
  MapStore store;
  for (const auto& [key, value] : sample["values"].items())
    store.values["a/" + key] = *decode_base64_url(value.get<std::string>());
  return store;
}

TEST(TensorStoreArrays, ReadAsTheyWereWritten) {
  int count = 0;
  for (const Json& sample : samples()) {
    SCOPED_TRACE(sample["name"].get<std::string>());
    MapStore store = store_of(sample);
    const ReadOptions options{.fill_missing = sample["sparse"].get<bool>()};
    auto reader = ArrayReader::open(store, "a", {}, options);
    ASSERT_TRUE(reader) << reader.error().message();
    EXPECT_EQ(reader->spec().shape, sample["shape"].get<Shape>());
    EXPECT_EQ(dtype_name(reader->spec().dtype), sample["dtype"].get<std::string>());
    const Bytes expected = *decode_base64_url(sample["bytes"].get<std::string>());
    Bytes out(expected.size());
    auto status = reader->read(Box::whole(reader->spec().shape), out);
    ASSERT_TRUE(status) << status.error().message();
    EXPECT_EQ(out, expected);
    if (!sample["sparse"] && !reader->spec().shape.empty()) {
      const Box box{{3, 5, 1}, {4, 5, 5}};
      Bytes part(static_cast<size_t>(element_count(box.shape) * dtype_bytes(reader->spec().dtype)));
      ASSERT_TRUE(reader->read(box, part));
      EXPECT_EQ(part, box_of(reader->spec().dtype, reader->spec().shape, expected, box));
    }
    ++count;
  }
  EXPECT_EQ(count, 91);
}

TEST(TensorStoreArrays, WithoutTheChunksOfTheFillValueAreRefusedByDefault) {
  for (const Json& sample : samples()) {
    if (!sample["sparse"]) continue;
    MapStore store = store_of(sample);
    Bytes out(9 * 11 * 7 * 4);
    auto status = ArrayReader::open(store, "a")->read(Box::whole(Shape{9, 11, 7}), out);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind(), ErrorKind::kNotFound);
  }
}

TEST(TensorStoreArrays, HaveTheMetadataThatWeWouldWrite) {
  for (const Json& sample : samples()) {
    MapStore store = store_of(sample);
    for (const Version version : {Version::kV2, Version::kV3}) {
      const auto at = store.values.find("a/" + std::string(metadata_key(version)));
      if (at == store.values.end()) continue;
      auto spec = parse_metadata(version, as_text(at->second), "x");
      ASSERT_TRUE(spec) << spec.error().message();
      Json stored = Json::parse(as_text(at->second)), ours = Json::parse(metadata_text(*spec));
      // -1 stands for one of the others, by the type.
      if (version == Version::kV2 && stored["compressor"].is_object() && stored["compressor"].value("shuffle", 0) == -1)
        stored["compressor"]["shuffle"] = static_cast<int>(Shuffle::kByte);
      EXPECT_EQ(Json::diff(stored, ours), Json::array()) << sample["name"];
    }
  }
}

}  // namespace
}  // namespace maxport::zarr
