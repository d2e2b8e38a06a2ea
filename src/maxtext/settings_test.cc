#include "maxtext/settings.h"

#include <gmock/gmock.h>

#include "storage/memory_storage.h"

namespace maxport::maxtext {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SettingsTest : public testing::Test {
 protected:
  void write(const std::string& path, std::string_view text) {
    if (const size_t slash = path.rfind('/'); slash != std::string::npos) {
      ASSERT_TRUE(storage_.make_directories(path.substr(0, slash)));
    }
    ASSERT_TRUE(storage_.write_text(path, text));
  }
  Result<Settings> load(std::vector<Override> overrides, std::optional<std::string> base = {},
                        std::map<std::string, std::string> environment = {}) {
    return Settings::load(storage_, {std::move(base), std::move(overrides), std::move(environment)});
  }
  Settings loaded(std::vector<Override> overrides, std::optional<std::string> base = {},
                  std::map<std::string, std::string> environment = {}) {
    auto out = load(std::move(overrides), std::move(base), std::move(environment));
    EXPECT_TRUE(out) << out.error().message();
    return out ? *out : Settings();
  }
  std::string refused(std::vector<Override> overrides, std::optional<std::string> base = {},
                      std::map<std::string, std::string> environment = {}) {
    auto out = load(std::move(overrides), std::move(base), std::move(environment));
    EXPECT_FALSE(out);
    return out ? "" : out.error().message();
  }
  MemoryStorage storage_;
};

TEST_F(SettingsTest, StartFromMaxTextsDefaults) {
  const Settings settings = loaded({});
  EXPECT_EQ(*settings.boolean("scan_layers"), true);
  EXPECT_EQ(*settings.integer("param_scan_axis"), 1);
  EXPECT_EQ(*settings.number("normalization_layer_epsilon"), 1e-5);
  EXPECT_EQ(*settings.text("weight_dtype"), "float32");
  EXPECT_EQ(*settings.boolean("checkpoint_storage_use_zarr3"), true);
  EXPECT_EQ(settings.find("max_num_checkpoints_to_keep")->value, nullptr);
  EXPECT_EQ(*settings.integer("lora.lora_rank"), 0);
  EXPECT_EQ(settings.model_name(), std::nullopt);
  EXPECT_EQ(*settings.optional_text("load_parameters_path"), std::nullopt);
  EXPECT_FALSE(settings.given("scan_layers"));
}

TEST_F(SettingsTest, TakeEveryMaxTextSpellingOfAnOverride) {
  const std::pair<Override, Json> cases[] = {
      {{"scan_layers", "False"}, false}, {{"scan_layers", "0"}, false}, {{"scan_layers", "no"}, false},
      {{"scan_layers", "f"}, false}, {{"scan_layers", "off"}, false}, {{"scan_layers", "TRUE"}, true},
      {{"base_emb_dim", "4_096"}, 4096}, {{"base_emb_dim", "4096.0"}, 4096}, {{"base_emb_dim", "'4096'"}, 4096},
      {{"rope_max_timescale", "1_000_000"}, 1000000}, {{"normalization_layer_epsilon", "1e-6"}, 1e-6},
      {{"mlp_activations", "[gelu,linear]"}, Json::array({"gelu", "linear"})},
      {{"mlp_activations", "(gelu, linear)"}, Json::array({"gelu", "linear"})},
      {{"max_num_checkpoints_to_keep", "None"}, nullptr}, {{"run_name", "123"}, "123"}, {{"run_name", "on"}, "on"},
      {{"run_name", "2024-01-01"}, "2024-01-01"}, {{"weight_dtype", "BFLOAT16"}, "bfloat16"},
      {{"load_parameters_path", ""}, ""}, {{"base_output_directory", "gs://b/x=y"}, "gs://b/x=y"},
      {{"scan-layers", "true"}, true}, {{"lora.lora_rank", "8"}, 8},
  };
  for (const auto& [word, expected] : cases) {
    const Settings settings = loaded({word});
    std::string key = word.key == "scan-layers" ? "scan_layers" : word.key;
    ASSERT_TRUE(settings.has(key));
    EXPECT_EQ(settings.find(key)->value, expected) << word.key << "=" << word.value;
    EXPECT_TRUE(settings.given(key));
  }
}

TEST_F(SettingsTest, LetTheLastOfTwoOverridesCount) {
  EXPECT_EQ(*loaded({{"base_emb_dim", "1"}, {"base_emb_dim", "2"}}).integer("base_emb_dim"), 2);
}

TEST_F(SettingsTest, NameTheNearestKeyForAnUnknownOne) {
  EXPECT_THAT(refused({{"scan_layer", "true"}}), HasSubstr("scan_layer is no setting of MaxText 0.2.5; did you mean scan_layers"));
  EXPECT_THAT(refused({{"lora.lora_rnak", "1"}}), HasSubstr("lora.lora_rank"));
  EXPECT_THAT(refused({{"\x1b[31m", "1"}}), Not(HasSubstr("\x1b")));
}

TEST_F(SettingsTest, SayWhatAValueOfTheWrongTypeShouldBe) {
  EXPECT_THAT(refused({{"scan_layers", "maybe"}}), HasSubstr("scan_layers is \"maybe\", expected true or false"));
  EXPECT_THAT(refused({{"base_emb_dim", "1.5"}}), HasSubstr("expected an integer"));
  EXPECT_THAT(refused({{"rope_type", "spiral"}}), HasSubstr("expected one of \"default\", \"llama3.1\", \"yarn\""));
  EXPECT_THAT(refused({{"base_emb_dim", ""}}), HasSubstr("base_emb_dim has no value"));
  EXPECT_THAT(refused({{"lora", "{lora_color: 1}"}}), HasSubstr("lora.lora_color is no setting"));
}

TEST_F(SettingsTest, NeverPrintASecret) {
  EXPECT_THAT(refused({{"hf_access_token", "[hf_verysecret]"}, {"scan_layers", "maybe"}}), Not(HasSubstr("verysecret")));
  write("base.yml", "hf_access_token: [hf_verysecret]\n");
  EXPECT_THAT(refused({}, "base.yml"), Not(HasSubstr("verysecret")));
}

TEST_F(SettingsTest, ReadTheBaseFileWhenItIsThereAndSayWhenItIsNot) {
  write("configs/base.yml", "scan_layers: false\nbase_emb_dim: 64\n");
  const Settings settings = loaded({{"base_emb_dim", "32"}}, "configs/base.yml");
  EXPECT_EQ(*settings.boolean("scan_layers"), false);
  EXPECT_EQ(settings.find("scan_layers")->source, "configs/base.yml");
  EXPECT_EQ(*settings.integer("base_emb_dim"), 32);
  EXPECT_THAT(settings.notes(), IsEmpty());

  const Settings without = loaded({}, "src/MaxText/configs/base.yml");
  EXPECT_EQ(*without.boolean("scan_layers"), true);
  EXPECT_THAT(without.notes(), Contains(HasSubstr("src/MaxText/configs/base.yml is not there")));
}

TEST_F(SettingsTest, LookBelowSrcForABaseFileAsMaxTextDoes) {
  write("src/maxtext/base.yml", "base_emb_dim: 77\n");
  EXPECT_EQ(*loaded({}, "maxtext/base.yml").integer("base_emb_dim"), 77);
}

TEST_F(SettingsTest, InheritByBaseConfig) {
  write("a/child.yml", "base_config: parent.yml\nbase_emb_dim: 1\n");
  write("a/parent.yml", "base_config: base.yml\nbase_emb_dim: 2\nbase_mlp_dim: 3\n");
  const Settings settings = loaded({}, "a/child.yml");
  EXPECT_EQ(*settings.integer("base_emb_dim"), 1);
  EXPECT_EQ(*settings.integer("base_mlp_dim"), 3);
  EXPECT_EQ(*settings.integer("base_num_query_heads"), 16) << "MaxText's own base.yml stands behind all";
  write("loop.yml", "base_config: loop.yml\n");
  EXPECT_THAT(refused({}, "loop.yml"), HasSubstr("inherit from one another"));
  write("orphan.yml", "base_config: elsewhere.yml\n");
  EXPECT_THAT(refused({}, "orphan.yml"), HasSubstr("elsewhere.yml"));
}

TEST_F(SettingsTest, KeepAndNoteKeysOfAnotherRelease) {
  write("base.yml", "a_setting_of_tomorrow: 5\n");
  const Settings settings = loaded({{"a_setting_of_tomorrow", "6"}}, "base.yml");
  EXPECT_EQ(settings.find("a_setting_of_tomorrow")->value, 6);
  EXPECT_THAT(settings.notes(), Contains(HasSubstr("a_setting_of_tomorrow")));
}

TEST_F(SettingsTest, ApplyTheModelFileBetweenBaseAndOverrides) {
  const Settings settings = loaded({{"model_name", "llama3.1-8b"}, {"scan_layers", "false"}});
  EXPECT_EQ(*settings.integer("base_emb_dim"), 4096);
  EXPECT_EQ(settings.find("base_emb_dim")->origin, SettingOrigin::kModelFile);
  EXPECT_EQ(*settings.boolean("scan_layers"), false);
  EXPECT_EQ(settings.model_name(), "llama3.1-8b");
}

TEST_F(SettingsTest, UseTheModelFileOfTheBaseModelForAnInstructForm) {
  const Settings settings = loaded({{"model_name", "llama3.1-70b-Instruct"}});
  EXPECT_EQ(*settings.integer("base_num_decoder_layers"), 80);
  EXPECT_EQ(settings.model_name(), "llama3.1-70b-Instruct");
}

TEST_F(SettingsTest, PreferModelFilesBesideTheBaseFile) {
  write("c/base.yml", "");
  write("c/models/llama3.1-8b.yml", "base_config: base.yml\nbase_emb_dim: 11\n");
  EXPECT_EQ(*loaded({{"model_name", "llama3.1-8b"}}, "c/base.yml").integer("base_emb_dim"), 11);
  write("c/post_train/rl.yml", "");
  EXPECT_EQ(*loaded({{"model_name", "llama3.1-8b"}}, "c/post_train/rl.yml").integer("base_emb_dim"), 11);
  write("c/models/my-own.yml", "base_emb_dim: 12\n");
  EXPECT_EQ(*loaded({{"model_name", "my-own"}}, "c/base.yml").integer("base_emb_dim"), 12);
}

TEST_F(SettingsTest, RefuseAModelKeyWithAnotherValueUnlessToldOtherwise) {
  const std::string message = refused({{"model_name", "llama3.1-8b"}, {"base_emb_dim", "80"}});
  EXPECT_THAT(message, HasSubstr("base_emb_dim (the model's 4096, given 80)"));
  EXPECT_THAT(message, HasSubstr("override_model_config=true"));
  EXPECT_EQ(*loaded({{"model_name", "llama3.1-8b"}, {"base_emb_dim", "4096"}}).integer("base_emb_dim"), 4096);
  EXPECT_EQ(*loaded({{"model_name", "llama3.1-8b"}, {"base_emb_dim", "80"}, {"override_model_config", "True"}})
                 .integer("base_emb_dim"),
            80);
}

TEST_F(SettingsTest, RefuseUnknownModelsWithTheNearestName) {
  EXPECT_THAT(refused({{"model_name", "llama3.1-8bb"}}), HasSubstr("did you mean llama3.1-8b"));
  EXPECT_THAT(refused({{"model_name", "../../etc/passwd"}}), HasSubstr("without '/'"));
}

TEST_F(SettingsTest, ReadTheEnvironmentLast) {
  const Settings settings = loaded({}, {}, {{"M_SCAN_LAYERS", "no"}, {"M_BASE_EMB_DIM", "64"}, {"PATH", "/bin"}});
  EXPECT_EQ(*settings.boolean("scan_layers"), false);
  EXPECT_EQ(*settings.integer("base_emb_dim"), 64);
  EXPECT_EQ(settings.find("scan_layers")->source, "the variable M_SCAN_LAYERS");
  EXPECT_TRUE(settings.given("scan_layers"));
  EXPECT_THAT(refused({{"scan_layers", "true"}}, {}, {{"M_SCAN_LAYERS", "no"}}), HasSubstr("use one of them"));
  EXPECT_THAT(refused({{"model_name", "llama3.1-8b"}}, {}, {{"M_BASE_EMB_DIM", "64"}}), HasSubstr("override_model_config"));
  EXPECT_THAT(refused({}, {}, {{"M_SCAN_LAYERS", "perhaps"}}), HasSubstr("M_SCAN_LAYERS"));
}

TEST_F(SettingsTest, SayWhereAValueCameFromWhenItHasTheWrongKind) {
  const Settings settings = loaded({{"base_emb_dim", "64"}});
  EXPECT_THAT(settings.text("base_emb_dim").error().message(), HasSubstr("64 in the command line"));
  EXPECT_FALSE(settings.integer("no_such_key"));
  EXPECT_FALSE(settings.boolean("base_emb_dim"));
}

TEST(SettingNames, KnowTheKeysOfMaxText) {
  EXPECT_TRUE(is_known_setting("lora.lora_restore_path"));
  EXPECT_TRUE(is_known_setting("vision_encoder_block"));
  EXPECT_FALSE(is_known_setting("lora_restore_path"));
  EXPECT_THAT(nearest_settings("basee_emb_dim"), Contains("base_emb_dim"));
}

}  // namespace
}  // namespace maxport::maxtext
