#include "maxtext/derived_settings.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "maxtext/known_settings.h"
#include "maxtext/test_configs.h"
#include "storage/memory_storage.h"

namespace maxport::maxtext {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// Where a derived setting differs from MaxText's model file on purpose.
struct Difference {
  std::string_view model, key;
  Json derived, model_file;
  std::string_view why;
};

const Difference kDifferences[] = {
    {"mistral-7b", "rope_max_timescale", 10000, 1000000, "the file has the base of a later release of the model"},
    {"gemma2-2b", "vocab_size", 256000, 256128, "MaxText pads the vocabulary"},
    {"gemma2-9b", "vocab_size", 256000, 256128, "MaxText pads the vocabulary"},
    {"gemma2-27b", "vocab_size", 256000, 256128, "MaxText pads the vocabulary"},
    {"qwen3-omni-30b-a3b", "n_window_infer_for_audio", 800, 400, "as published"},
    {"deepseek3-671b", "n_routing_groups", 8, -1, "the file leaves group routing out, the model has it"},
    {"deepseek3-671b", "topk_routing_group", 4, -1, "the same"},
    {"deepseek3.2-671b", "n_routing_groups", 8, -1, "the same"},
    {"deepseek3.2-671b", "topk_routing_group", 4, -1, "the same"},
    {"deepseek3.2-671b", "attention", "dot_product", "autoselected", "MaxText refuses to choose by itself"},
    {"deepseek4-284b", "attention", "dot_product", "autoselected", "the same"},
    {"deepseek4-tiny", "attention", "dot_product", "autoselected", "the same"},
    {"deepseek4-tiny", "original_max_position_embeddings", 65536, 4096, "has no effect without yarn"},
};

// What model files say about training, pictures' placeholders and the like.
const std::set<std::string_view> kNotArchitecture = {
    "enable_dropout",  "load_balance_loss_weight", "routed_bias_update_rate", "log_moe_bias_norms",
    "tokenizer_type",  "float32_gate_logits",      "image_placeholder",       "use_multimodal",
};

/// Settings without effect in the presence of another one.
bool has_effect(std::string_view key, const std::function<Json(std::string_view)>& value) {
  static const std::set<std::string_view> yarn = {"rope_interleave", "rope_truncate", "rope_attention_scaling",
                                                  "rope_factor", "beta_fast", "beta_slow", "max_position_embeddings"};
  if (key == "normalize_embedding_logits") return value("logits_via_embedding") == true;
  if (yarn.contains(key)) return value("rope_type") == "yarn";
  return true;
}

class Comparison {
 public:
  Comparison(const OrderedJson& derived, const Json& model_file) : derived_(derived), file_(model_file) {}

  std::vector<std::string> keys() const {
    std::set<std::string> out;
    for (const auto& [key, value] : derived_.items()) out.insert(key);
    for (const auto& [key, value] : file_.items()) out.insert(key);
    return {out.begin(), out.end()};
  }
  Json ours(std::string_view key) const { return from(Json(derived_), key); }
  Json theirs(std::string_view key) const { return from(file_, key); }

 private:
  static Json from(const Json& settings, std::string_view key) {
    if (settings.contains(key)) return settings.at(std::string(key));
    return known_settings().find(key)->second.fallback.value_or(Json());
  }
  const OrderedJson& derived_;
  const Json& file_;
};

TEST(DerivedSettings, AreThoseOfMaxTextsModelFilesForEveryNamedModel) {
  size_t differences = 0;
  for (std::string_view name : catalog_names()) {
    const CatalogEntry& entry = catalog_model(name);
    const auto config = config_of(entry.hf_config);
    const bool fp8 = name.ends_with("fp8"), llama = entry.family == "llama";
    const Derived derived = derive({.family = entry.family,
                                    .config = config,
                                    .head_tied = config.tied_head(false)->tied,
                                    .scan_layers = entry.settings.value("scan_layers", true),
                                    .use_multimodal = entry.settings.contains("hidden_size_for_vit"),
                                    .use_audio = entry.settings.value("use_audio", false),
                                    .float8_weights = fp8});
    const Comparison comparison(derived.settings, entry.settings);
    for (const std::string& key : comparison.keys()) {
      const Json ours = comparison.ours(key), theirs = comparison.theirs(key);
      const auto our = [&](std::string_view other) { return comparison.ours(other); };
      if (ours == theirs || kNotArchitecture.contains(key) || !has_effect(key, our)) continue;
      // A model called llama3.1 has this rope by its name.
      if (llama && key == "rope_type" && ours == "llama3.1") continue;
      const auto expected = std::ranges::find_if(
          kDifferences, [&](const Difference& known) { return known.model == name && known.key == key; });
      ASSERT_NE(expected, std::end(kDifferences)) << name << " " << key << ": derived " << ours << ", model file " << theirs;
      EXPECT_EQ(ours, expected->derived) << name << " " << key;
      EXPECT_EQ(theirs, expected->model_file) << name << " " << key;
      ++differences;
    }
  }
  EXPECT_EQ(differences, std::size(kDifferences)) << "an expected difference is gone";
}

/// The settings with which the reference converted and ran a small model.
Settings settings_of(const Json& golden) {
  std::vector<Override> overrides;
  for (const std::string word : golden.at("args")) {
    const size_t equals = word.find('=');
    if (!word.starts_with('-')) overrides.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  MemoryStorage storage;
  auto out = Settings::load(storage, {std::nullopt, overrides, {}});
  EXPECT_TRUE(out) << out.error().message();
  return *out;
}

TEST(DerivedSettings, AreThoseWithWhichTheReferenceRanEverySmallModel) {
  // Sizes of pictures and their length are choices of the run, the padded vocabulary is an argument. The small olmo3 has
  // no yarn in its layers and was run without.
  const std::set<std::pair<std::string, std::string>> different = {
      {"gemma2-2b", "vocab_size"}, {"qwen3-vl-2b", "image_size_for_vit"}, {"qwen3-omni-30b-a3b", "image_size_for_vit"},
      {"qwen3.5-35b-a3b", "image_size_for_vit"}, {"gemma4-26b", "vision_output_length"},
      {"qwen3-omni-30b-a3b", "position_id_per_seconds"}};
  const std::set<std::string> not_the_models = {"model_name", "override_model_config", "hardware", "attention",
                                                "skip_jax_distributed_system"};
  int compared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MAXPORT_TEST_DATA "/goldens")) {
    if (entry.path().filename() != "expected.json" || entry.path().string().find("lora") != std::string::npos) continue;
    const Json golden = read_json_file(entry.path());
    const Settings run = settings_of(golden);
    const std::string model = *run.model_name();
    const auto config = config_of(read_json_file(entry.path().parent_path().parent_path() / "hf" / "config.json"));
    const Derived derived = derive({.family = catalog_family(model),
                                    .config = config,
                                    .head_tied = config.tied_head(false)->tied,
                                    .scan_layers = *run.boolean("scan_layers"),
                                    .use_multimodal = *run.boolean("use_multimodal"),
                                    .use_audio = *run.boolean("use_audio")});
    for (const auto& [key, value] : derived.settings.items()) {
      const Setting* theirs = run.find(key);
      ASSERT_NE(theirs, nullptr) << key;
      const auto our = [&](std::string_view other) {
        const auto found = derived.settings.find(other);
        return found == derived.settings.end() ? Json() : Json(*found);
      };
      if (!has_effect(key, our) || different.contains({model, key})) continue;
      if (model == "llama3.1-8b" && key == "rope_type") continue;
      EXPECT_EQ(Json(value), theirs->value) << entry.path() << " " << key;
      ++compared;
    }
    for (const auto& [key, setting] : run.all()) {
      const bool of_a_part = key.ends_with("_for_vit") || key.ends_with("_for_audio");
      if (!run.given(key) || not_the_models.contains(key) || (of_a_part && !*run.boolean("use_multimodal"))) continue;
      EXPECT_TRUE(derived.settings.contains(key)) << entry.path() << " " << key;
    }
  }
  EXPECT_GT(compared, 2000);
}

TEST(DerivedSettings, FollowWhatTheConfigurationSaysOfSmolLm2) {
  const Json smol = {{"model_type", "llama"}, {"architectures", {"LlamaForCausalLM"}}, {"hidden_size", 576},
                     {"intermediate_size", 1536}, {"num_attention_heads", 9}, {"num_key_value_heads", 3},
                     {"num_hidden_layers", 30}, {"vocab_size", 49152}, {"rms_norm_eps", 1e-5}, {"rope_theta", 100000},
                     {"hidden_act", "silu"}, {"tie_word_embeddings", true}, {"max_position_embeddings", 8192}};
  const auto config = config_of(smol);
  const Derived derived = derive({.family = "llama", .config = config, .head_tied = true});
  EXPECT_EQ(derived.settings.at("logits_via_embedding"), true);
  EXPECT_EQ(derived.settings.at("normalize_embedding_logits"), false);
  EXPECT_EQ(derived.settings.at("rope_max_timescale"), 100000);
  EXPECT_EQ(derived.settings.at("rope_use_scale"), false);
  EXPECT_EQ(derived.settings.at("rope_type"), "llama3.1");
  EXPECT_EQ(derived.settings.at("head_dim"), 64);
  EXPECT_EQ(derived.settings.at("base_num_decoder_layers"), 30);
  EXPECT_THAT(derived.notes, testing::IsEmpty());
}

TEST(DerivedSettings, HaveMaxTextsTypes) {
  for (std::string_view name : catalog_names()) {
    const Derived derived = derive_changed(name, Json::object());
    for (const auto& [key, value] : derived.settings.items()) {
      const auto coerced = coerce_setting(key, known_settings().at(key), Json(value), std::nullopt);
      ASSERT_TRUE(coerced) << name << " " << coerced.error().message();
      EXPECT_EQ(coerced->type(), Json(value).type()) << name << " " << key;
    }
  }
}

TEST(DerivedSettings, SayWhatMaxTextCannotRepresent) {
  EXPECT_THAT(derive_changed("llama3.1-8b", {{"hidden_act", "relu2"}}).notes, Contains(HasSubstr("no activation called relu2")));
  EXPECT_THAT(derive_changed("qwen3-0.6b", {{"hidden_act", "gelu"}}).notes, Contains(HasSubstr("exact")));
  EXPECT_THAT(derive_changed("mistral-7b", Json::object()).notes, Contains(HasSubstr("last 4096 tokens")));
  EXPECT_THAT(derive_changed("llama3.1-8b", {{"rope_parameters", {{"rope_theta", 4134231.5}}}}).notes,
              Contains(HasSubstr("integers only")));
  const CatalogEntry& gemma = catalog_model("gemma2-2b");
  Json odd = gemma.hf_config;
  odd["num_hidden_layers"] = 25;
  odd.erase("layer_types");
  const auto config = config_of(odd);
  std::vector<std::string> notes;
  EXPECT_THAT(derive_settings({.family = "gemma2", .config = config}, notes).error().message(), HasSubstr("25 layers"));
  EXPECT_EQ(derive_settings({.family = "rwkv", .config = config}, notes).error().kind(), ErrorKind::kUnsupported);
}

TEST(DerivedSettings, TakeThePaddedVocabularyWhereItIsGiven) {
  const auto config = config_of(catalog_model("gemma2-2b").hf_config);
  EXPECT_EQ(derive({.family = "gemma2", .config = config, .vocab_size = 256128}).settings.at("vocab_size"), 256128);
}

TEST(DerivedSettings, ReadTheGlobalSizesOfGemma4LayerByLayerToo) {
  Json config = catalog_model("gemma4-26b").hf_config;
  Json& text = config["text_config"];
  text.erase("global_head_dim");
  text.erase("num_global_key_value_heads");
  text["per_layer_config"] = {{"05", {{"head_dim", 96}, {"num_key_value_heads", 3}}}};
  const auto roles = config_of(config);
  const Derived derived = derive({.family = "gemma4", .config = roles});
  EXPECT_EQ(derived.settings.at("global_head_dim"), 96);
  EXPECT_EQ(derived.settings.at("global_num_kv_heads"), 3);
}

}  // namespace
}  // namespace maxport::maxtext
