#include "zarr/metadata.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "zarr/testing.h"

namespace maxport::zarr {
namespace {

using testing::HasSubstr;

constexpr const char* kV2 =
    R"({"chunks":[2,3],"compressor":null,"dimension_separator":".","dtype":"<f4","fill_value":null,"filters":null,)"
    R"("order":"C","shape":[4,6],"zarr_format":2})";
constexpr const char* kV3 =
    R"({"chunk_grid":{"configuration":{"chunk_shape":[2,4]},"name":"regular"},"chunk_key_encoding":{"name":"default"},)"
    R"("codecs":[{"configuration":{"endian":"little"},"name":"bytes"}],"data_type":"float32","fill_value":0.0,)"
    R"("node_type":"array","shape":[4,8],"zarr_format":3})";

/// The document with one change, given as a JSON merge patch, or with the member "-name" removed.
std::string changed(const char* document, const std::string& patch) {
  Json json = Json::parse(document);
  const Json parsed = Json::parse(patch);
  for (const auto& [name, value] : parsed.items()) {
    if (name.starts_with('-'))
      json.erase(name.substr(1));
    else
      json[name] = value;
  }
  return json.dump();
}

std::string bytes_text(const Bytes& bytes) { return hex(bytes); }

TEST(Metadata, IsWrittenAsStockWritesIt) {
  EXPECT_EQ(metadata_text(*make_array_spec(Version::kV2, DType::kBfloat16, {32, 4}, {32, 4}, Compression::kZstd)),
            R"({"chunks":[32,4],"compressor":{"id":"zstd","level":1},"dimension_separator":".","dtype":"bfloat16",)"
            R"("fill_value":null,"filters":null,"order":"C","shape":[32,4],"zarr_format":2})");
  EXPECT_EQ(metadata_text(*make_array_spec(Version::kV3, DType::kBfloat16, {32, 4}, {8, 4}, Compression::kBlosc)),
            R"({"chunk_grid":{"configuration":{"chunk_shape":[8,4]},"name":"regular"},"chunk_key_encoding":{"name":)"
            R"("default"},"codecs":[{"configuration":{"endian":"little"},"name":"bytes"},{"configuration":{"blocksize":)"
            R"(0,"clevel":1,"cname":"zstd","shuffle":"shuffle","typesize":2},"name":"blosc"},{"name":"crc32c"}],)"
            R"("data_type":"bfloat16","fill_value":0.0,"node_type":"array","shape":[32,4],"zarr_format":3})");
  EXPECT_EQ(metadata_text(*make_array_spec(Version::kV3, DType::kBfloat16, {32, 4}, {8, 4}, Compression::kLz4)),
            R"({"chunk_grid":{"configuration":{"chunk_shape":[8,4]},"name":"regular"},"chunk_key_encoding":{"name":)"
            R"("default"},"codecs":[{"configuration":{"endian":"little"},"name":"bytes"},{"configuration":{"blocksize":)"
            R"(0,"clevel":1,"cname":"lz4","shuffle":"bitshuffle","typesize":2},"name":"blosc"},{"name":"crc32c"}],)"
            R"("data_type":"bfloat16","fill_value":0.0,"node_type":"array","shape":[32,4],"zarr_format":3})");
  EXPECT_EQ(metadata_text(*make_array_spec(Version::kV3, DType::kBool, {}, {}, Compression::kZstd)),
            R"({"chunk_grid":{"configuration":{"chunk_shape":[]},"name":"regular"},"chunk_key_encoding":{"name":)"
            R"("default"},"codecs":[{"name":"bytes"},{"configuration":{"checksum":true,"level":1},"name":"zstd"}],)"
            R"("data_type":"bool","fill_value":false,"node_type":"array","shape":[],"zarr_format":3})");
}

TEST(Metadata, OfRandomSpecsParsesToTheSpec) {
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    ArraySpec spec = random_spec(random);
    if (!spec.fill_value.empty() && spec.dtype != DType::kBool && dtype_info(spec.dtype).bits >= 8 &&
        spec.dtype != DType::kFloat8E8m0fnu)
      spec.fill_value[0] = std::byte(random() % 120);
    const std::string text = metadata_text(spec);
    auto parsed = parse_metadata(spec.version, text, "x");
    ASSERT_TRUE(parsed) << parsed.error().message() << text;
    // v2 keeps neither the shuffle of blosc's bytes (the type says it) nor an order of one axis.
    ASSERT_EQ(metadata_text(*parsed), text);
    if (spec.version == Version::kV3) {
      ASSERT_EQ(*parsed, spec) << text;
    }
  }
}

// What TensorStore 0.1.86 accepts and refuses, tried with each of these documents.
TEST(Metadata, OfVersion2IsAcceptedAsTensorStoreAcceptsIt) {
  for (const char* patch :
       {R"({"-dimension_separator":0})", R"({"dimension_separator":"/"})", R"({"filters":[]})", R"({"extra":5})",
        R"({"order":"F"})", R"({"dtype":">f4"})", R"({"dtype":"<i1"})", R"({"dtype":">u1"})", R"({"dtype":"<b1"})",
        R"({"dtype":"float8_e4m3fn"})", R"({"dtype":"int4"})", R"({"dtype":">c8"})", R"({"shape":[0,6]})",
        R"({"compressor":{"id":"zstd"}})", R"({"compressor":{"id":"zstd","level":-5}})", R"({"compressor":{"id":"blosc"}})",
        R"({"compressor":{"id":"blosc","cname":"lz4","clevel":5,"shuffle":-1,"blocksize":0}})",
        R"({"compressor":{"id":"zlib"}})", R"({"compressor":{"id":"gzip","level":9}})",
        R"({"compressor":{"id":"bz2","level":1}})", R"({"fill_value":0})", R"({"fill_value":1.5})",
        R"({"fill_value":"NaN"})", R"({"fill_value":"-Infinity"})", R"({"fill_value":1e300})",
        R"({"dtype":"<i4","fill_value":2.0})", R"({"dtype":"|b1","fill_value":true})",
        R"({"dtype":"<c8","fill_value":["NaN",2.0]})"}) {
    auto spec = parse_metadata(Version::kV2, changed(kV2, patch), "x");
    EXPECT_TRUE(spec) << patch << ": " << spec.error().message();
  }
}

TEST(Metadata, OfVersion2IsRefusedWhenDamagedOrUnknown) {
  struct Case {
    const char* patch;
    ErrorKind kind;
    const char* text;
  };
  constexpr auto kCorrupt = ErrorKind::kCorruptData, kUnsupported = ErrorKind::kUnsupported;
  const Case cases[] = {
      {R"({"-chunks":0})", kCorrupt, "a/.zarray: member \"chunks\" is missing"},
      {R"({"-compressor":0})", kCorrupt, "\"compressor\" is missing"},
      {R"({"-dtype":0})", kCorrupt, "\"dtype\" is missing"},
      {R"({"-fill_value":0})", kCorrupt, "\"fill_value\" is missing"},
      {R"({"-filters":0})", kCorrupt, "\"filters\" is missing"},
      {R"({"-order":0})", kCorrupt, "\"order\" is missing"},
      {R"({"-shape":0})", kCorrupt, "\"shape\" is missing"},
      {R"({"-zarr_format":0})", kCorrupt, "\"zarr_format\" is missing"},
      {R"({"zarr_format":3})", kCorrupt, "zarr_format: 3 is not between 2 and 2"},
      {R"({"filters":[{"id":"delta"}]})", kUnsupported, "filters are not supported"},
      {R"({"order":"X"})", kCorrupt, "order: \"X\" is not one of \"C\", \"F\""},
      {R"({"dimension_separator":"_"})", kCorrupt, "not one of"},
      {R"({"dimension_separator":null})", kCorrupt, "expected a string, found null"},
      {R"({"dtype":"|O"})", kUnsupported, "element type \"|O\" is not supported"},
      {R"({"dtype":"f4"})", kUnsupported, "element type"},
      {R"({"dtype":"float32"})", kUnsupported, "element type"},
      {R"({"dtype":"|f4"})", kUnsupported, "element type"},
      {R"({"dtype":"<M8[ns]"})", kUnsupported, "element type"},
      {R"({"dtype":"<bfloat16"})", kUnsupported, "element type"},
      {R"({"dtype":[["x","<f4"]]})", kUnsupported, "element type"},
      {R"({"chunks":[0,3]})", kCorrupt, "chunks: 0 is not between 1"},
      {R"({"chunks":[-1,3]})", kCorrupt, "chunks: -1"},
      {R"({"chunks":[2]})", kCorrupt, "has 1 dimensions, the array has 2"},
      {R"({"chunks":[2.5,3]})", kCorrupt, "expected an integer, found a number"},
      {R"({"chunks":[1099511627776,1099511627776]})", kCorrupt, "exceeds"},
      {R"({"shape":[-1,6]})", kCorrupt, "shape: -1"},
      {R"({"shape":["4",6]})", kCorrupt, "expected an integer, found a string"},
      {R"({"shape":[9223372036854775808,6]})", kCorrupt, "9223372036854775808 is not between"},
      {R"({"shape":[4611686018427387904,4611686018427387904]})", kCorrupt, "too large to address"},
      {R"({"compressor":5})", kCorrupt, "compressor: expected an object"},
      {R"({"compressor":{"id":"lzma"}})", kUnsupported, "unknown compressor \"lzma\""},
      {R"({"compressor":{"id":"zstd","level":30}})", kCorrupt, "level: 30"},
      {R"({"compressor":{"id":"zstd","level":1,"foo":1}})", kCorrupt, "unknown member \"foo\""},
      {R"({"compressor":{"id":"blosc","cname":"foo"}})", kCorrupt, "cname: \"foo\""},
      {R"({"compressor":{"id":"blosc","shuffle":3}})", kCorrupt, "shuffle: 3"},
      {R"({"fill_value":"inf"})", kCorrupt, "\"inf\" is not a value of float32"},
      {R"({"fill_value":"AAAAAA=="})", kCorrupt, "is not a value of float32"},
      {R"({"fill_value":true})", kCorrupt, "true is not a value of float32"},
      {R"({"dtype":"<i4","fill_value":1.5})", kCorrupt, "1.5 is not a value of int32"},
      {R"({"dtype":"|i1","fill_value":200})", kCorrupt, "200 is not a value of int8"},
      {R"({"dtype":"|u1","fill_value":-1})", kCorrupt, "-1 is not a value of uint8"},
      {R"({"dtype":"|b1","fill_value":1})", kCorrupt, "1 is not a value of bool"},
      {R"({"dtype":"<c8","fill_value":1.0})", kCorrupt, "not a pair of numbers"},
  };
  for (const Case& c : cases) {
    auto spec = parse_metadata(Version::kV2, changed(kV2, c.patch), "a/.zarray");
    ASSERT_FALSE(spec) << c.patch;
    EXPECT_EQ(spec.error().kind(), c.kind) << spec.error().message();
    EXPECT_THAT(spec.error().message(), HasSubstr(c.text)) << c.patch;
  }
}

TEST(Metadata, OfVersion3IsAcceptedAsTensorStoreAcceptsIt) {
  for (const char* patch :
       {R"({"foo":{"must_understand":false,"x":1}})", R"({"attributes":{"a":1}})", R"({"dimension_names":["a",null]})",
        R"({"storage_transformers":[]})", R"({"chunk_key_encoding":{"name":"default","configuration":{"separator":"."}}})",
        R"({"chunk_key_encoding":{"name":"default","configuration":{}}})", R"({"chunk_key_encoding":{"name":"v2"}})",
        R"({"chunk_key_encoding":{"name":"v2","configuration":{"separator":"/"}}})", R"({"fill_value":1})",
        R"({"fill_value":"NaN"})", R"({"fill_value":"Infinity"})", R"({"fill_value":"0x7fc00001"})",
        R"({"fill_value":"0x7fc0"})", R"({"data_type":"int4","fill_value":7})", R"({"data_type":"int4","fill_value":-8})",
        R"({"data_type":"int64","fill_value":9223372036854775807})", R"({"data_type":"int32","fill_value":0.0})",
        R"({"data_type":"uint64","fill_value":18446744073709551615})", R"({"data_type":"bool","fill_value":true})",
        R"({"data_type":"complex64","fill_value":["0x7fc00000",0]})",
        R"({"data_type":"uint8","fill_value":0,"codecs":[{"name":"bytes"}]})",
        R"({"codecs":[{"name":"bytes","configuration":{"endian":"big"}}]})",
        R"({"codecs":[{"name":"transpose","configuration":{"order":"F"}},{"name":"bytes","configuration":{"endian":"little"}}]})",
        R"({"codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{"level":1}}]})",
        R"({"codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c","configuration":{}}]})"}) {
    auto spec = parse_metadata(Version::kV3, changed(kV3, patch), "x");
    EXPECT_TRUE(spec) << patch << ": " << spec.error().message();
  }
}

TEST(Metadata, OfVersion3IsRefusedWhenDamagedOrUnknown) {
  struct Case {
    const char* patch;
    ErrorKind kind;
    const char* text;
  };
  constexpr auto kCorrupt = ErrorKind::kCorruptData, kUnsupported = ErrorKind::kUnsupported;
  const Case cases[] = {
      {R"({"-chunk_grid":0})", kCorrupt, "\"chunk_grid\" is missing"},
      {R"({"-chunk_key_encoding":0})", kCorrupt, "\"chunk_key_encoding\" is missing"},
      {R"({"-codecs":0})", kCorrupt, "\"codecs\" is missing"},
      {R"({"-data_type":0})", kCorrupt, "\"data_type\" is missing"},
      {R"({"-fill_value":0})", kCorrupt, "\"fill_value\" is missing"},
      {R"({"-node_type":0})", kCorrupt, "\"node_type\" is missing"},
      {R"({"node_type":"group"})", kCorrupt, "node_type"},
      {R"({"foo":{"must_understand":true}})", kUnsupported, "foo: unknown extension"},
      {R"({"foo":5})", kUnsupported, "foo: unknown extension"},
      {R"({"foo":{}})", kUnsupported, "foo: unknown extension"},
      {R"({"foo":null})", kUnsupported, "foo: unknown extension"},
      {R"({"attributes":null})", kCorrupt, "attributes"},
      {R"({"dimension_names":["a"]})", kCorrupt, "a list of 2 names"},
      {R"({"storage_transformers":[{"name":"x"}]})", kUnsupported, "storage_transformers"},
      {R"({"chunk_grid":{"name":"regular"}})", kCorrupt, "chunk_shape"},
      {R"({"chunk_grid":{"name":"rectangular","configuration":{"chunk_shape":[2,4]}}})", kCorrupt, "rectangular"},
      {R"({"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,4],"x":1}}})", kCorrupt, "\"x\""},
      {R"({"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[0,4]}}})", kCorrupt, "chunk_shape: 0"},
      {R"({"chunk_key_encoding":"default"})", kCorrupt, "expected an object"},
      {R"({"chunk_key_encoding":{"name":"default","configuration":{"separator":"_"}}})", kCorrupt, "separator"},
      {R"({"chunk_key_encoding":{"name":"foo"}})", kCorrupt, "foo"},
      {R"({"fill_value":null})", kCorrupt, "null is not a value of float32"},
      {R"({"fill_value":"0xzz"})", kCorrupt, "is not a value of float32"},
      {R"({"fill_value":"0x100000000"})", kCorrupt, "is not a value of float32"},
      {R"({"data_type":"int4","fill_value":8})", kCorrupt, "8 is not a value of int4"},
      {R"({"data_type":"int32","fill_value":2147483648})", kCorrupt, "is not a value of int32"},
      {R"({"data_type":"int64","fill_value":9223372036854775808})", kCorrupt, "is not a value of int64"},
      {R"({"data_type":"string","fill_value":""})", kUnsupported, "element type"},
      {R"({"data_type":"<f4"})", kUnsupported, "element type"},
      {R"({"codecs":[]})", kCorrupt, "no codec turns elements into bytes"},
      {R"({"codecs":["bytes"]})", kCorrupt, "expected an object"},
      {R"({"codecs":[{"name":"bytes"}]})", kCorrupt, "\"endian\" is missing"},
      {R"({"codecs":[{"name":"crc32c"}]})", kCorrupt, "crc32c must not stand before"},
      {R"({"codecs":[{"name":"foo"}]})", kUnsupported, "unknown codec \"foo\""},
      {R"({"codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"bytes","configuration":{"endian":"little"}}]})",
       kCorrupt, "bytes must not stand after"},
      {R"({"codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"transpose","configuration":{"order":[1,0]}}]})",
       kCorrupt, "transpose must not stand after"},
      {R"({"codecs":[{"name":"transpose","configuration":{"order":[1,1]}},{"name":"bytes","configuration":{"endian":"little"}}]})",
       kCorrupt, "axis 1 occurs twice"},
      {R"({"codecs":[{"name":"transpose","configuration":{"order":[0,2]}},{"name":"bytes","configuration":{"endian":"little"}}]})",
       kCorrupt, "2 is not between 0 and 1"},
      {R"({"codecs":[{"name":"transpose","configuration":{"order":[0]}},{"name":"bytes","configuration":{"endian":"little"}}]})",
       kCorrupt, "not a list of 2 axes"},
      {R"({"codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"zstd","configuration":{}}]})", kCorrupt,
       "\"level\" is missing"},
      {R"({"codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"blosc","configuration":{"cname":"lz4",
          "clevel":1,"shuffle":2,"typesize":4,"blocksize":0}}]})",
       kCorrupt, "shuffle: expected a string"},
  };
  for (const Case& c : cases) {
    auto spec = parse_metadata(Version::kV3, changed(kV3, c.patch), "a/zarr.json");
    ASSERT_FALSE(spec) << c.patch;
    EXPECT_EQ(spec.error().kind(), c.kind) << spec.error().message();
    EXPECT_THAT(spec.error().message(), HasSubstr(c.text)) << c.patch;
  }
}

/// The codecs of a document whose only codec is a shard with these changes to its configuration.
Result<ArraySpec> parse_shard(const std::string& patch) {
  const char* sharding = R"({"chunk_shape":[1,2],"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],
    "index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},{"name":"crc32c"}]})";
  Json codec = {{"name", "sharding_indexed"}, {"configuration", Json::parse(changed(sharding, patch))}};
  return parse_metadata(Version::kV3, changed(kV3, Json{{"codecs", Json::array({codec})}}.dump()), "x");
}

TEST(Metadata, OfShardsIsCheckedAgainstTheChunk) {
  for (const char* patch :
       {"{}", R"({"index_location":"start"})",
        R"({"index_codecs":[{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"}]})",
        R"({"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]})", R"({"chunk_shape":[2,4]})"}) {
    auto spec = parse_shard(patch);
    EXPECT_TRUE(spec) << patch << spec.error().message();
  }
  struct Case {
    const char* patch;
    ErrorKind kind;
    const char* text;
  };
  constexpr auto kCorrupt = ErrorKind::kCorruptData, kUnsupported = ErrorKind::kUnsupported;
  for (const Case& c : {Case{R"({"chunk_shape":[1,3]})", kCorrupt, "[1, 3] does not divide the chunk shape [2, 4]"},
                        Case{R"({"chunk_shape":[1]})", kCorrupt, "another rank"},
                        Case{R"({"chunk_shape":[0,2]})", kCorrupt, "0 is not between 1"},
                        Case{R"({"index_location":"x"})", kCorrupt, "index_location"},
                        Case{R"({"index_codecs":[]})", kCorrupt, "no codec turns"},
                        Case{R"({"-index_codecs":0})", kCorrupt, "missing"},
                        Case{R"({"codecs":[]})", kCorrupt, "no codec turns"},
                        Case{R"({"extra":1})", kCorrupt, "unknown member \"extra\""},
                        Case{R"({"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}},
                               {"name":"zstd","configuration":{"level":1}}]})",
                             kUnsupported, "only bytes, with or without crc32c"}}) {
    auto spec = parse_shard(c.patch);
    ASSERT_FALSE(spec) << c.patch;
    EXPECT_EQ(spec.error().kind(), c.kind) << spec.error().message();
    EXPECT_THAT(spec.error().message(), HasSubstr(c.text));
  }
}

TEST(Metadata, OfShardsRefusesCodecsAfterTheShard) {
  const char* codecs = R"({"codecs":[{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":
    [{"name":"bytes","configuration":{"endian":"little"}}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}},
    {"name":"crc32c"}]})";
  auto spec = parse_metadata(Version::kV3, changed(kV3, codecs), "x");
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().message(), "x: codecs[1]: crc32c after sharding_indexed");
}

TEST(Metadata, OfShardsRefusesTooManySubChunksAndTooDeepNesting) {
  std::string text = changed(kV3, R"({"shape":[65536,65536],"chunk_grid":{"name":"regular","configuration":
    {"chunk_shape":[65536,65536]}},"data_type":"uint8","fill_value":0,"codecs":[{"name":"sharding_indexed","configuration":
    {"chunk_shape":[1,1],"codecs":[{"name":"bytes"}],"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}]})");
  EXPECT_EQ(parse_metadata(Version::kV3, text, "x").error().kind(), ErrorKind::kResourceLimit);

  std::string codecs = R"([{"name":"bytes","configuration":{"endian":"little"}}])";
  for (int depth = 0; depth < 9; ++depth)
    codecs = R"([{"name":"sharding_indexed","configuration":{"chunk_shape":[1,2],"codecs":)" + codecs +
             R"(,"index_codecs":[{"name":"bytes","configuration":{"endian":"little"}}]}}])";
  auto spec = parse_metadata(Version::kV3, changed(kV3, "{\"codecs\":" + codecs + "}"), "x");
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message(), HasSubstr("nested deeper than 8"));
}

TEST(Metadata, KeepsTheBitsOfFillValues) {
  struct Case {
    const char* dtype;
    const char* value;
    const char* bytes;
  };
  for (const Case& c :
       {Case{"float32", "1.5", "0000c03f"}, Case{"float32", "\"NaN\"", "0000c07f"}, Case{"float32", "\"0x7f800001\"", "0100807f"},
        Case{"float32", "-0.0", "00000080"}, Case{"bfloat16", "\"-Infinity\"", "80ff"}, Case{"bfloat16", "0.1", "cd3d"},
        Case{"float16", "1e300", "007c"}, Case{"float8_e4m3fn", "\"0x7f\"", "7f"}, Case{"float64", "0.1", "9a9999999999b93f"},
        Case{"int16", "-2", "feff"}, Case{"int4", "-1", "0f"}, Case{"uint64", "18446744073709551615", "ffffffffffffffff"},
        Case{"bool", "true", "01"}, Case{"complex64", "[1.5,\"Infinity\"]", "0000c03f0000807f"}}) {
    auto spec = parse_metadata(
        Version::kV3, changed(kV3, fmt::format(R"({{"data_type":"{}","fill_value":{}}})", c.dtype, c.value)), "x");
    ASSERT_TRUE(spec) << c.dtype << spec.error().message();
    EXPECT_EQ(bytes_text(spec->fill_value), c.bytes) << c.dtype << c.value;
    auto again = parse_metadata(Version::kV3, metadata_text(*spec), "x");
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->fill_value, spec->fill_value) << metadata_text(*spec);
  }
}

}  // namespace
}  // namespace maxport::zarr
