#include "maxtext/run_configuration.h"

#include <gmock/gmock.h>

#include "maxtext/test_configs.h"
#include "maxtext/yaml_value.h"
#include "storage/memory_storage.h"

namespace maxport::maxtext {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunConfiguration made(const RunConfigurationRequest& request) {
  auto out = make_run_configuration(request);
  EXPECT_TRUE(out) << out.error().message();
  return out ? *out : RunConfiguration();
}

huggingface::ConfigRoles golden(const std::string& family) {
  return config_of(read_json_file(std::string(MAXPORT_TEST_DATA "/goldens/") + family + "/hf/config.json"));
}

TEST(RunConfiguration, NamesTheModelWhenItIsMaxTextsOwn) {
  const auto config = config_of(catalog_model("llama3.1-8b").hf_config);
  const RunConfiguration out = made({.family = "llama", .config = config});
  EXPECT_EQ(out.model_name, "llama3.1-8b");
  ASSERT_EQ(out.files.size(), 1u);
  EXPECT_EQ(out.files[0].path, "maxtext.yml");
  EXPECT_THAT(out.files[0].text, AllOf(HasSubstr("base_config: base.yml\n"), HasSubstr("model_name: llama3.1-8b\n"),
                                       HasSubstr("base_emb_dim: 4096\n"), HasSubstr("scan_layers: true\n")));
}

TEST(RunConfiguration, LeavesTheNameOutWhereMaxTextDoesNotNeedIt) {
  const auto config = golden("llama3.1-8b");
  const RunConfiguration out = made({.family = "llama", .config = config, .model_name = "llama3.1-8b"});
  EXPECT_EQ(out.model_name, std::nullopt) << "MaxText's own file has other sizes";
  EXPECT_EQ(out.files.size(), 1u);
  EXPECT_THAT(out.files[0].text, Not(HasSubstr("model_name")));
}

TEST(RunConfiguration, WritesAModelFileOfItsOwnWhereMaxTextGoesByTheName) {
  const auto config = golden("olmo3-7b");
  const RunConfiguration out = made({.family = "olmo3", .config = config});
  EXPECT_EQ(out.model_name, "olmo3-7b");
  ASSERT_EQ(out.files.size(), 2u);
  EXPECT_EQ(out.files[1].path, "models/olmo3-7b.yml");
  EXPECT_THAT(out.files[1].text, AllOf(HasSubstr("base_emb_dim: 96\n"), Not(HasSubstr("base_config"))));
}

TEST(RunConfiguration, ChoosesTheNameWhoseArithmeticIsTheModels) {
  Json config = golden("gemma3-4b").root();
  const auto small = config_of(config);
  EXPECT_EQ(made({.family = "gemma3", .config = small}).model_name, "gemma3-4b");
  config["text_config"]["query_pre_attn_scalar"] = 20;  // hidden_size / num_attention_heads
  const auto large = config_of(config);
  EXPECT_EQ(made({.family = "gemma3", .config = large}).model_name, "gemma3-27b");
  EXPECT_EQ(made({.family = "gemma3", .config = large, .model_name = "gemma3-4b"}).model_name, "gemma3-27b");
  config["text_config"]["query_pre_attn_scalar"] = 7;
  const auto other = config_of(config);
  EXPECT_THAT(made({.family = "gemma3", .config = other}).notes, testing::Contains(HasSubstr("scales queries by 7")));
  const auto e2b = golden("gemma4-e2b");
  EXPECT_EQ(made({.family = "gemma4-small", .config = e2b, .scan_layers = false, .model_name = "gemma4-e4b"}).model_name,
            "gemma4-e2b");
}

TEST(RunConfiguration, NeedsANameForPictures) {
  const auto config = golden("qwen3-vl-2b");
  EXPECT_EQ(made({.family = "qwen3-vl", .config = config, .scan_layers = false}).model_name, std::nullopt);
  EXPECT_EQ(made({.family = "qwen3-vl", .config = config, .scan_layers = false, .use_multimodal = true}).model_name,
            "qwen3-vl-2b");
}

TEST(RunConfiguration, UsesANameThatMaxTextHasForAnAlias) {
  const auto config = config_of(catalog_model("qwen3-480b-a35b").hf_config);
  EXPECT_EQ(made({.family = "qwen3-moe", .config = config, .model_name = "qwen3-coder-480b-a35b"}).model_name,
            "qwen3-480b-a35b");
}

TEST(RunConfiguration, IsReadBackAsWhatWasDerived) {
  for (std::string_view name : catalog_names()) {
    const CatalogEntry& entry = catalog_model(name);
    const auto config = config_of(entry.hf_config);
    const RunConfiguration out = made({.family = entry.family, .config = config, .tokenizer_path = "org/name: x"});
    auto read = parse_yaml_mapping(out.files[0].text, "maxtext.yml");
    ASSERT_TRUE(read) << read.error().message();
    std::map<std::string, Json> values(read->begin(), read->end());
    EXPECT_EQ(values["base_config"], "base.yml");
    EXPECT_EQ(values["tokenizer_path"], "org/name: x");
    for (const auto& [key, value] : out.settings.items()) EXPECT_EQ(values[key], Json(value)) << name << " " << key;
  }
}

TEST(RunConfiguration, TellsSettingsThatContradictTheModel) {
  const auto config = golden("llama3.1-8b");
  const RunConfiguration out = made({.family = "llama", .config = config});
  MemoryStorage storage;
  auto settings = Settings::load(storage, {{}, {{"base_emb_dim", "64"}, {"head_dim", "24"}, {"vocab_size", "200"}}, {}});
  ASSERT_TRUE(settings);
  const auto mismatches = contradicting_settings(*settings, out.settings);
  ASSERT_EQ(mismatches.size(), 2u);
  EXPECT_EQ(mismatches[0].key, "base_emb_dim");
  EXPECT_EQ(mismatches[0].given, "64");
  EXPECT_EQ(mismatches[0].derived, "80");
  EXPECT_EQ(mismatches[1].key, "vocab_size");
  EXPECT_THAT(contradicting_settings(*Settings::load(storage, {}), out.settings), IsEmpty()) << "defaults were not given";
}

TEST(RunConfiguration, KeepsFloat8WeightsAsTheyAre) {
  const auto config = config_of(catalog_model("qwen3.5-35b-a3b-fp8").hf_config);
  const RunConfiguration out = made({.family = "qwen3.5", .config = config, .float8_weights = true});
  EXPECT_EQ(out.settings.at("weight_dtype"), "float8_e4m3fn");
  EXPECT_EQ(out.model_name, "qwen3.5-35b-a3b-fp8");
}

}  // namespace
}  // namespace maxport::maxtext
