#include "orbax/metadata.h"

#include <gmock/gmock.h>

namespace maxport::orbax {
namespace {

using testing::HasSubstr;

TEST(StepMetadata, IsWrittenWithTheMembersOfStockAndReadAgain) {
  const StepMetadata metadata{.item_handlers = {{"items", std::string(kTreeHandlerType)}},
                              .init_timestamp_nsecs = 1,
                              .commit_timestamp_nsecs = {},
                              .custom_metadata = {{"scan_layers", true}}};
  const std::string text = step_metadata_text(metadata);
  EXPECT_EQ(text, R"({"item_handlers":{"items":"orbax.checkpoint._src.handlers.pytree_checkpoint_handler.)"
                  R"(PyTreeCheckpointHandler"},"metrics":{},"performance_metrics":{},"init_timestamp_nsecs":1,)"
                  R"("commit_timestamp_nsecs":null,"custom_metadata":{"scan_layers":true}})");
  auto parsed = parse_step_metadata(text, "x");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->item_handlers, metadata.item_handlers);
  EXPECT_EQ(parsed->init_timestamp_nsecs, 1);
  EXPECT_EQ(parsed->commit_timestamp_nsecs, std::nullopt);
  EXPECT_EQ(parsed->custom_metadata, metadata.custom_metadata);
}

TEST(StepMetadata, TakesOneHandlerForASingleItemAndAnythingThatStockTakes) {
  auto single = parse_step_metadata(R"({"item_handlers":"h","metrics":null,"custom_metadata":null})", "x");
  ASSERT_TRUE(single) << single.error().message();
  EXPECT_EQ(single->item_handlers.at(""), "h");
  EXPECT_EQ(Json::parse(step_metadata_text(*single))["item_handlers"], "h");
  EXPECT_TRUE(parse_step_metadata("{}", "x"));
  EXPECT_TRUE(parse_step_metadata(R"({"item_handlers":null})", "x"));
  auto folded = parse_step_metadata(R"({"mine":5,"custom_metadata":{}})", "x");
  ASSERT_TRUE(folded);
  EXPECT_EQ(folded->custom_metadata["mine"], 5);
}

TEST(StepMetadata, RefusesWhatStockCannotLoad) {
  for (const auto& [text, message] :
       {std::pair{"[]", "expected an object, found an array"}, {"{", "not valid JSON"},
        {R"({"item_handlers":5})", "item_handlers"}, {R"({"item_handlers":{"a":5}})", "expected a string"},
        {R"({"metrics":[]})", "metrics"}, {R"({"custom_metadata":[]})", "custom_metadata"},
        {R"({"init_timestamp_nsecs":1.5})", "init_timestamp_nsecs"},
        {R"({"mine":5,"custom_metadata":{"a":1}})", "unknown member \"mine\" beside a custom_metadata"}}) {
    auto parsed = parse_step_metadata(text, "0/_CHECKPOINT_METADATA");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(parsed.error().message(), testing::AllOf(HasSubstr("0/_CHECKPOINT_METADATA"), HasSubstr(message)));
  }
}

TEST(TreeMetadata, IsWrittenAsStockWritesItAndReadAgain) {
  TreeMetadata metadata{.leaves = {},
                        .use_ocdbt = true,
                        .use_zarr3 = true,
                        .store_equal_to_fill_value = true,
                        .custom_metadata = nullptr};
  metadata.leaves.push_back({.path = {{"params"}, {"0", true}}, .value_type = std::string(kJaxType), .write_shape = Shape{2, 3}});
  metadata.leaves.push_back({.path = {{"it's"}}, .value_type = std::string(kEmptyDictType), .skip_deserialize = true});
  const std::string text = tree_metadata_text(metadata);
  EXPECT_EQ(
      text,
      R"x({"tree_metadata":{"('params', '0')":{"key_metadata":[{"key":"params","key_type":2},{"key":"0","key_type":1}],)x"
      R"x("value_metadata":{"value_type":"jax.Array","skip_deserialize":false,"write_shape":[2,3]}},"(\"it's\",)":)x"
      R"x({"key_metadata":[{"key":"it's","key_type":2}],"value_metadata":{"value_type":"Dict","skip_deserialize":true}}},)x"
      R"x("use_ocdbt":true,"use_zarr3":true,"store_array_data_equal_to_fill_value":true,"custom_metadata":null})x");
  auto parsed = parse_tree_metadata(text, "x");
  ASSERT_TRUE(parsed) << parsed.error().message();
  ASSERT_EQ(parsed->leaves.size(), 2u);
  EXPECT_EQ(tree_metadata_text(*parsed).size(), text.size());
}

TEST(TreeMetadata, TakesAnyMemberNamesAndAbsentFlags) {
  auto parsed = parse_tree_metadata(
      R"({"tree_metadata":{"whatever":{"key_metadata":[{"key":"a","key_type":2}],"value_metadata":
          {"value_type":"np.ndarray","skip_deserialize":false}}},"value_metadata_tree":"{}","unknown":1})",
      "x");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->leaves[0].path, (TreePath{{"a"}}));
  EXPECT_EQ(parsed->use_ocdbt, std::nullopt);
  EXPECT_FALSE(parsed->use_zarr3);
  EXPECT_FALSE(parsed->store_equal_to_fill_value);
}

std::string with_leaf(const std::string& keys, const std::string& value) {
  return R"({"tree_metadata":{"m":{"key_metadata":)" + keys + R"(,"value_metadata":)" + value + "}}}";
}

TEST(TreeMetadata, RefusesDamage) {
  const std::string value = R"({"value_type":"np.ndarray","skip_deserialize":false})";
  const std::pair<std::string, const char*> cases[] = {
      {"", "not valid JSON"},
      {"[]", "expected an object"},
      {"{}", "\"tree_metadata\" is missing"},
      {R"({"tree_metadata":[]})", "tree_metadata: expected an object"},
      {R"({"tree_metadata":{},"use_ocdbt":1})", "use_ocdbt: expected true or false"},
      {R"({"tree_metadata":{},"use_zarr3":"yes"})", "use_zarr3"},
      {R"({"tree_metadata":{"m":{}}})", "m: member \"key_metadata\" is missing"},
      {with_leaf("5", value), "expected an array"},
      {with_leaf("[5]", value), "expected an object"},
      {with_leaf(R"([{"key":5,"key_type":2}])", value), "key: expected a string"},
      {with_leaf(R"([{"key":"a","key_type":3}])", value), "key_type: 3 is not between 1 and 2"},
      {with_leaf(R"([{"key":"a"}])", value), "\"key_type\" is missing"},
      {with_leaf(R"([{"key":"a","key_type":1}])", value), "\"a\" is not a list index"},
      {with_leaf(R"([{"key":"1","key_type":1}])", value), "index 0 is missing"},
      {with_leaf(R"([{"key":"a","key_type":2}])", "{}"), "\"value_type\" is missing"},
      {with_leaf(R"([{"key":"a","key_type":2}])", R"({"value_type":"x","skip_deserialize":1})"), "skip_deserialize"},
      {with_leaf(R"([{"key":"a","key_type":2}])", R"({"value_type":"x","write_shape":[-1]})"), "write_shape: -1"},
      {with_leaf(R"([{"key":"a\u0000","key_type":2}])", value), "without NUL"},
  };
  for (const auto& [text, message] : cases) {
    auto parsed = parse_tree_metadata(text, "items/_METADATA");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::kCorruptData);
    EXPECT_THAT(parsed.error().message(), testing::AllOf(HasSubstr("items/_METADATA"), HasSubstr(message)));
  }
}

TEST(DeviceSharding, FollowsMaxTextsRule) {
  struct Case {
    Shape shape;
    int64_t devices;
    std::optional<size_t> axis;
    Shape write_shape;
  };
  for (const Case& c : {Case{{32, 4}, 16, 0, {2, 4}}, Case{{6, 32}, 16, 1, {6, 2}}, Case{{8, 8, 32, 256}, 16, {}, {8, 8, 2, 256}},
                        Case{{7, 9}, 2, {}, {7, 9}}, Case{{}, 4, {}, {}}, Case{{5}, 1, 0, {5}}}) {
    EXPECT_EQ(device_sharding(c.shape, c.devices).axis, c.axis) << shape_text(c.shape);
    EXPECT_EQ(device_write_shape(c.shape, c.devices), c.write_shape) << shape_text(c.shape);
  }
}

TEST(ShardingFile, IsWrittenAsStockWritesItAndReadAgain) {
  const std::map<std::string, DeviceSharding> shardings = {{"a.b", device_sharding(Shape{3, 4}, 2)},
                                                           {"r", device_sharding(Shape{3, 3, 4}, 2)},
                                                           {"s", device_sharding(Shape{}, 2)}};
  const std::string text = sharding_text(shardings);
  EXPECT_THAT(text, HasSubstr(R"("YS5i":"{\"sharding_type\":\"NamedSharding\",\"shape\":[2],)"));
  auto parsed = parse_sharding(text, "x");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->at("a.b"), Json::parse(R"({"sharding_type":"NamedSharding","shape":[2],"axis_names":
    ["checkpoint_sharding_axis"],"axis_types":["AxisType.Auto"],"partition_spec":[null,"checkpoint_sharding_axis"],
    "device_mesh":{"mesh":[{"id":0},{"id":1}]}})"));
  EXPECT_EQ(parsed->at("r")["partition_spec"], Json::parse("[null]"));
  EXPECT_EQ(parsed->at("s")["partition_spec"], Json::array());
  for (const char* bad : {"[]", R"({"!":"{}"})", R"({"YQ==":{}})", R"({"YQ==":"{"})"}) EXPECT_FALSE(parse_sharding(bad, "x"));
}

TEST(ArrayMetadataFile, IsWrittenAsStockWritesItAndReadAgain) {
  const ArrayMetadata array{"a.b", {4, 2}, {4, 1}, nullptr};
  const std::string text = array_metadata_text(std::span(&array, 1));
  EXPECT_EQ(text, R"({"array_metadatas":[{"array_metadata":{"param_name":"a.b","write_shape":[4,2],"chunk_shape":[4,1],)"
                  R"("ext_metadata":null}}]})");
  auto parsed = parse_array_metadata(text, "x");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ((*parsed)[0].chunk_shape, (Shape{4, 1}));
  for (const char* bad : {"{}", R"({"array_metadatas":5})", R"({"array_metadatas":[{}]})",
                          R"({"array_metadatas":[{"array_metadata":{"param_name":"a","write_shape":5,"chunk_shape":[]}}]})"})
    EXPECT_FALSE(parse_array_metadata(bad, "x"));
}

TEST(StringsFile, HoldsTextsByName) {
  const std::map<std::string, std::string> strings = {{"a.b", "x\n\"y\""}, {"c", ""}};
  EXPECT_EQ(*parse_strings(strings_text(strings), "x"), strings);
  EXPECT_FALSE(parse_strings(R"({"a":5})", "x"));
  EXPECT_FALSE(parse_strings("[]", "x"));
}

}  // namespace
}  // namespace maxport::orbax
