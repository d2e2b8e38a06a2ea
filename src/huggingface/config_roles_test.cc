#include "huggingface/config_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "storage/storage.h"

namespace maxport::huggingface {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kLlama = R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
  "num_attention_heads":4,"num_key_value_heads":2,"vocab_size":128,"rope_theta":10000.0})";

Json llama() { return Json::parse(kLlama); }

Result<ConfigRoles> roles(Json config) { return ConfigRoles::create(std::move(config), "config.json"); }

ConfigRoles good(Json config) {
  auto made = roles(std::move(config));
  EXPECT_TRUE(made) << made.error().message();
  return made.value();
}

Json with(std::string_view key, Json value) {
  Json config = llama();
  config[std::string(key)] = std::move(value);
  return config;
}

struct Refused {
  std::string_view label;
  std::string json;
  std::string_view message;
  ErrorKind kind = ErrorKind::kCorruptData;
};

class RefusesConfig : public testing::TestWithParam<Refused> {};

TEST_P(RefusesConfig, AndNamesTheField) {
  Json config = llama();
  config.update(Json::parse(GetParam().json));
  auto made = roles(std::move(config));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), AllOf(HasSubstr("config.json"), HasSubstr(GetParam().message)));
  EXPECT_EQ(made.error().kind(), GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(
    Fields, RefusesConfig,
    testing::Values(
        Refused{"integer_as_text", R"({"hidden_size":"64"})", "hidden_size is a string (\"64\"), expected an integer"},
        Refused{"fraction", R"({"num_hidden_layers":2.5})", "num_hidden_layers is a number (2.5)"},
        Refused{"whole_fraction", R"({"num_hidden_layers":2.0})", "num_hidden_layers is a number (2.0)"},
        Refused{"boolean", R"({"num_attention_heads":true})", "num_attention_heads is a boolean"},
        Refused{"list_of_layers", R"({"layer_types":"full_attention"})", "layer_types is \"full_attention\", expected"},
        Refused{"a_billion_layers", R"({"num_hidden_layers":1000000000})",
                "num_hidden_layers is 1000000000, more than the limit of 10000", ErrorKind::kResourceLimit},
        Refused{"beyond_63_bits", R"({"num_hidden_layers":18446744073709551615})",
                "num_hidden_layers is 18446744073709551615, more than", ErrorKind::kResourceLimit},
        Refused{"beyond_64_bits", R"({"num_hidden_layers":1e30})", "num_hidden_layers is a number (1e+30)"},
        Refused{"no_layers", R"({"num_hidden_layers":0})", "num_hidden_layers is 0, expected at least 1"},
        Refused{"negative_layers", R"({"num_hidden_layers":-2})", "num_hidden_layers is -2, expected at least 1"},
        Refused{"head_dim_0", R"({"head_dim":0})", "head_dim is 0, expected at least 1"},
        Refused{"vocab_size_0", R"({"vocab_size":0})", "vocab_size is 0, expected at least 1"},
        Refused{"hidden_size_negative", R"({"hidden_size":-64})", "hidden_size is -64"},
        Refused{"experts_negative", R"({"num_local_experts":-8})", "num_local_experts is -8, expected at least 0"},
        Refused{"layer_types_too_short", R"({"layer_types":["full_attention"]})",
                "layer_types has 1 entries, but num_hidden_layers is 2"},
        Refused{"layer_types_of_numbers", R"({"layer_types":[1,2]})",
                "layer_types is [1,2], expected a list of strings"},
        Refused{"heads_do_not_divide", R"({"num_attention_heads":3})",
                "num_attention_heads is 3, which is not a multiple of num_key_value_heads, 2",
                ErrorKind::kInvalidArgument},
        Refused{"two_spellings_differ", R"({"num_experts":8,"n_routed_experts":16})",
                "num_experts is 8 but n_routed_experts is 16", ErrorKind::kInvalidArgument},
        Refused{"tie_as_text", R"({"tie_word_embeddings":"yes"})", "tie_word_embeddings is a string"},
        Refused{"ties_differ", R"({"tie_word_embeddings":false,"text_config":{"tie_word_embeddings":true}})",
                "tie_word_embeddings is false, but text_config.tie_word_embeddings is true",
                ErrorKind::kInvalidArgument}),
    [](const auto& row) { return std::string(row.param.label); });

TEST(ConfigRoles, RefusesWhatIsNoObject) {
  for (const char* text : {"[]", "5", "null", "\"x\""}) EXPECT_FALSE(roles(Json::parse(text))) << text;
}

// R14
TEST(ConfigRoles, TakesHeadDimFromWidthAndHeadsWhenAbsentOrNull) {
  for (const Json& config : {llama(), with("head_dim", nullptr)}) {
    const ConfigRoles made = good(config);
    EXPECT_EQ(made.integer("head_dim").value(), 16);
    EXPECT_EQ(made.source_of("head_dim"), "hidden_size / num_attention_heads");
  }
  const ConfigRoles made = good(with("head_dim", 32));
  EXPECT_EQ(made.integer("head_dim").value(), 32);
  EXPECT_EQ(made.source_of("head_dim"), "head_dim");
}

TEST(ConfigRoles, SaysWhyThereIsNoHeadDim) {
  Json config = with("hidden_size", 65);
  auto head_dim = good(config).integer("head_dim");
  ASSERT_FALSE(head_dim);
  EXPECT_THAT(head_dim.error().message(), HasSubstr("hidden_size is not a multiple of num_attention_heads"));
}

// R15
TEST(ConfigRoles, GivesEveryHeadItsOwnKeyAndValueWhenTheirNumberIsAbsentOrNull) {
  Json absent = llama();
  absent.erase("num_key_value_heads");
  for (const Json& config : {absent, with("num_key_value_heads", nullptr)}) {
    const ConfigRoles made = good(config);
    EXPECT_EQ(made.integer("num_key_value_heads").value(), 4);
    EXPECT_EQ(made.source_of("num_key_value_heads"), "num_attention_heads");
  }
}

TEST(ConfigRoles, NullCountsAsAbsent) {
  const ConfigRoles made = good(with("sliding_window", nullptr));
  EXPECT_FALSE(made.has("sliding_window"));
  EXPECT_EQ(made.optional_integer("sliding_window").value(), std::nullopt);
  EXPECT_EQ(made.integer_or("sliding_window", 7).value(), 7);
  EXPECT_EQ(made.source_of("sliding_window"), "absent");
  EXPECT_EQ(made.integer("sliding_window").error().kind(), ErrorKind::kNotFound);
}

TEST(ConfigRoles, FindsARoleUnderEverySpelling) {
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
    const ConfigRoles made = good(with(key, 8));
    EXPECT_EQ(made.integer("num_experts").value(), 8) << key;
    EXPECT_EQ(made.source_of("num_experts"), key);
  }
  for (const char* key : {"num_experts_per_tok", "top_k_experts"})
    EXPECT_EQ(good(with(key, 2)).integer("num_experts_per_tok").value(), 2) << key;
  for (const char* key : {"dtype", "torch_dtype"})
    EXPECT_EQ(good(with(key, "bfloat16")).text("dtype").value(), "bfloat16") << key;
  EXPECT_EQ(good(with("hidden_act", "silu")).text("hidden_activation").value(), "silu");
}

TEST(ConfigRoles, ReadsEveryKindOfValueAndRefusesTheOthers) {
  Json config = llama();
  config.update(Json::parse(R"({"b":true,"n":1.5,"i":3,"s":"x","l":[1,2],"t":["p","q"]})"));
  const ConfigRoles made = good(config);
  EXPECT_EQ(made.boolean("b").value(), true);
  EXPECT_EQ(made.number("n").value(), 1.5);
  EXPECT_EQ(made.number("i").value(), 3.0);
  EXPECT_EQ(made.text("s").value(), "x");
  EXPECT_THAT(made.integers("l").value(), testing::ElementsAre(1, 2));
  EXPECT_THAT(made.texts("t").value(), testing::ElementsAre("p", "q"));
  EXPECT_TRUE(made.integers("none").value().empty());
  for (const char* key : {"n", "i", "s", "l"}) EXPECT_FALSE(made.boolean(key)) << key;
  for (const char* key : {"b", "s", "l"}) EXPECT_FALSE(made.number(key)) << key;
  for (const char* key : {"b", "n", "i", "l"}) EXPECT_FALSE(made.text(key)) << key;
  for (const char* key : {"b", "n", "s", "t"}) EXPECT_FALSE(made.integers(key)) << key;
  EXPECT_EQ(made.boolean_or("none", true).value(), true);
  EXPECT_EQ(made.number_or("none", 2.5).value(), 2.5);
}

TEST(ConfigRoles, GoesToTheDecoderOfANestedConfig) {
  const ConfigRoles flat = good(llama());
  EXPECT_EQ(flat.section_path(), "");
  Json nested = {{"model_type", "gemma3"}, {"hidden_size", 7}, {"text_config", llama()}};
  const ConfigRoles text = good(nested);
  EXPECT_EQ(text.section_path(), "text_config");
  EXPECT_EQ(text.integer("hidden_size").value(), 64);
  EXPECT_EQ(text.source_of("hidden_size"), "text_config.hidden_size");
  EXPECT_EQ(text.model_type(), "gemma3");
  EXPECT_EQ(text.section_model_type(), "llama");
  const ConfigRoles thinker = good({{"model_type", "omni"}, {"thinker_config", {{"text_config", llama()}}}});
  EXPECT_EQ(thinker.section_path(), "thinker_config.text_config");
  EXPECT_EQ(thinker.source_of("head_dim"), "hidden_size / num_attention_heads");
}

TEST(ConfigRoles, AnswersTheSameQuestionsAboutAnotherSection) {
  Json config = llama();
  config["vision_config"] = {{"depth", 4}, {"num_heads", 2}, {"hidden_size", 32}, {"patch_size", 14}};
  const auto vision = good(config).section("vision_config").value();
  ASSERT_TRUE(vision);
  EXPECT_EQ(vision->integer("num_hidden_layers").value(), 4);
  EXPECT_EQ(vision->integer("head_dim").value(), 16);
  EXPECT_EQ(vision->source_of("num_hidden_layers"), "vision_config.depth");
  EXPECT_EQ(good(config).section("audio_config").value(), std::nullopt);
  config["vision_config"]["depth"] = 1'000'000'000;
  EXPECT_EQ(good(config).section("vision_config").error().kind(), ErrorKind::kResourceLimit);
}

TEST(ConfigRoles, FillsInWhatPublishedGemmaConfigsLeaveOut) {
  const ConfigRoles made = good(Json::parse(R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text",
    "hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34,"sliding_window":1024,
    "rope_scaling":{"factor":8.0,"rope_type":"linear"}}})"));
  EXPECT_EQ(made.integer("num_attention_heads").value(), 8);
  EXPECT_EQ(made.integer("num_key_value_heads").value(), 4);
  EXPECT_EQ(made.integer("head_dim").value(), 256);
  EXPECT_EQ(made.number("rms_norm_eps").value(), 1e-6);
  EXPECT_EQ(made.source_of("head_dim"), "default of gemma3_text in transformers");
  const Rope full = made.rope("full_attention").value(), local = made.rope("sliding_attention").value();
  EXPECT_EQ(full.theta, 1e6);
  EXPECT_EQ(full.type, "linear");
  EXPECT_EQ(full.parameters, (Json{{"factor", 8.0}}));
  EXPECT_EQ(local.theta, 1e4);
  EXPECT_EQ(local.type, "default");
}

// R17 to R20
TEST(TiedHead, FollowsTheKeyWhereverItStands) {
  for (bool tied : {true, false}) {
    const auto top = good(with("tie_word_embeddings", tied)).tied_head(!tied).value();
    EXPECT_EQ(top.tied, tied);
    EXPECT_EQ(top.source, "tie_word_embeddings");
    Json text = with("tie_word_embeddings", tied);
    const auto nested = good({{"text_config", text}}).tied_head(!tied).value();
    EXPECT_EQ(nested.tied, tied);
    EXPECT_EQ(nested.source, "text_config.tie_word_embeddings");
    EXPECT_EQ(good({{"text_config", text}, {"tie_word_embeddings", tied}}).tied_head(!tied).value().tied, tied);
    EXPECT_EQ(good({{"thinker_config", {{"text_config", llama()}, {"tie_word_embeddings", tied}}}})
                  .tied_head(!tied)
                  .value()
                  .source,
              "thinker_config.tie_word_embeddings");
  }
}

TEST(TiedHead, FollowsTheFilesWithoutAKeyAndSaysSo) {
  EXPECT_FALSE(good(llama()).tied_head(true).value().tied);
  EXPECT_TRUE(good(llama()).tied_head(false).value().tied);
  EXPECT_THAT(good(llama()).tied_head(false).value().source, HasSubstr("tie_word_embeddings is absent"));
  EXPECT_FALSE(good(with("tie_word_embeddings", nullptr)).tied_head(true).value().tied);
}

// R29
TEST(Quantization, NamesTheMethodThatCannotBeConverted) {
  for (const char* method : {"gptq", "awq", "bitsandbytes", "compressed-tensors", "quanto", "fbgemm_fp8", "\x1b[2J"}) {
    const auto found = good(with("quantization_config", {{"quant_method", method}, {"bits", 4}})).quantization();
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(found.error().message(), HasSubstr(printable(method)));
    EXPECT_THAT(found.error().message(), testing::Not(HasSubstr("\n")));
  }
  EXPECT_EQ(good(with("quantization_config", {{"bits", 4}})).quantization().error().kind(), ErrorKind::kUnsupported);
}

TEST(Quantization, ReportsTheMethodsThatCanBeConverted) {
  for (const char* method : {"fp8", "mxfp4"}) {
    const Json config = {{"quant_method", method}, {"weight_block_size", {128, 128}}};
    const auto found = good(with("quantization_config", config)).quantization().value();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->method, method);
    EXPECT_EQ(found->config, config);
  }
  Json nested = {{"text_config", with("quantization_config", {{"quant_method", "fp8"}})}};
  EXPECT_EQ(good(nested).quantization().value()->source, "text_config.quantization_config");
  EXPECT_FALSE(good(llama()).quantization().value());
  EXPECT_FALSE(good(with("quantization_config", nullptr)).quantization().value());
}

TEST(Notes, TellOfCodeAndOddArchitectures) {
  EXPECT_TRUE(good(with("architectures", {"LlamaForCausalLM"})).notes().empty());
  EXPECT_THAT(good(with("architectures", Json::array())).notes(), testing::ElementsAre(HasSubstr("is empty")));
  EXPECT_THAT(good(with("architectures", {"A", "B"})).notes(), testing::ElementsAre(HasSubstr("has 2 entries")));
  EXPECT_THAT(good(with("auto_map", {{"AutoModel", "evil.Evil"}})).notes(),
              testing::ElementsAre(HasSubstr("it is never run")));
}

TEST(Goldens, EveryConfigAnswersTheQuestionsThatAllFamiliesAsk) {
  int seen = 0;
  for (const auto& folder : std::filesystem::directory_iterator(MAXPORT_TEST_DATA "/goldens")) {
    const auto path = folder.path() / "hf" / "config.json";
    if (!std::filesystem::exists(path)) continue;
    ++seen;
    const std::string text = local_storage().read_text(path.string()).value();
    auto made = ConfigRoles::create(parse_json(text, path.string()).value(), path.string());
    ASSERT_TRUE(made) << made.error().message();
    for (const char* role :
         {"num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "vocab_size", "head_dim"}) {
      const auto value = made->integer(role);
      EXPECT_TRUE(value) << value.error().message();
      EXPECT_NE(made->source_of(role), "absent") << path << role;
    }
    for (const char* layer_type : {"", "full_attention", "sliding_attention"}) {
      const auto rope = made->rope(layer_type);
      EXPECT_TRUE(rope) << rope.error().message();
    }
    EXPECT_TRUE(made->tied_head(true)) << path;
    EXPECT_TRUE(made->quantization()) << path;
    EXPECT_TRUE(made->notes().empty()) << path;
  }
  EXPECT_GE(seen, 18);
}

}  // namespace
}  // namespace maxport::huggingface
