#include "maxtext/catalog.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "maxtext/settings.h"

namespace maxport::maxtext {
namespace {

using huggingface::ConfigRoles;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

Json read_compressed_json(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text, block(1 << 16, '\0');
  for (int count = 1; file && count > 0;) {
    count = gzread(file, block.data(), static_cast<unsigned>(block.size()));
    if (count > 0) text.append(block, 0, count);
  }
  if (file) gzclose(file);
  return Json::parse(text);
}

ConfigRoles roles(Json config) {
  auto out = ConfigRoles::create(std::move(config), "config.json");
  EXPECT_TRUE(out) << out.error().message();
  return *out;
}

const CatalogEntry& model(std::string_view name) {
  auto out = find_model(name);
  EXPECT_TRUE(out) << out.error().message();
  return **out;
}

/// The table has 1e-06 as text, as plain YAML 1.1 reads it; MaxText's reader takes it for a number.
bool same_settings(const Json& ours, Json table) {
  for (auto& [key, value] : table.items())
    if (key == "normalization_layer_epsilon" && value.is_string()) value = std::stod(value.get<std::string>());
  return ours == table;
}

TEST(Catalog, HasEveryNameOfMaxTextsTables) {
  const Json tables = read_json(MAXPORT_TEST_DATA "/models.json");
  for (const auto& [name, facts] : tables.items()) {
    EXPECT_THAT(catalog_names(), Contains(name));
    const Json file = facts.value("maxtext_model_file", Json());
    if (file.is_object()) {
      EXPECT_TRUE(same_settings(model(name).settings, file)) << name;
    }
    if (facts.at("hf_id").is_string()) {
      EXPECT_EQ(model(name).hf_id, facts.at("hf_id").get<std::string>()) << name;
    }
  }
}

TEST(Catalog, HoldsReadableConfigurationsAndKnownSettings) {
  for (std::string_view name : catalog_names()) {
    const CatalogEntry& entry = model(name);
    EXPECT_EQ(entry.name, name);
    EXPECT_EQ(entry.family, catalog_family(name));
    EXPECT_THAT(family_names(), Contains(std::string_view(entry.family)));
    const ConfigRoles config = roles(entry.hf_config);
    EXPECT_FALSE(config.model_type().empty()) << name;
    EXPECT_EQ(config.architectures().size(), 1u) << name;
    EXPECT_TRUE(config.rope("full_attention")) << name;
    EXPECT_FALSE(entry.settings.empty()) << name;
    for (const auto& [key, value] : entry.settings.items()) EXPECT_TRUE(is_known_setting(key)) << name << " " << key;
  }
}

/// The member at a dotted path, or null.
const Json* at_path(const Json& config, std::string_view dotted) {
  const Json* here = &config;
  while (!dotted.empty()) {
    const size_t dot = std::min(dotted.find('.'), dotted.size());
    const std::string key(dotted.substr(0, dot));
    if (!here->is_object() || !here->contains(key)) return nullptr;
    here = &here->at(key);
    dotted.remove_prefix(std::min(dot + 1, dotted.size()));
  }
  return here;
}

TEST(Catalog, CarriesEveryFieldThatTheReferencesMappingsRead) {
  int compared = 0;
  for (const auto& file : std::filesystem::directory_iterator(MAXPORT_TEST_DATA "/plans")) {
    if (file.path().extension() != ".gz" || file.path().filename().string().starts_with("status")) continue;
    const Json plan = read_compressed_json(file.path());
    const std::string name = plan.at("model_name");
    for (const auto& [field, value] : plan.at("config").at("hf_fields_read").items()) {
      // The reference asks for the field to learn that a model is not quantized; its table has one entry for both forms.
      if (field == "quantization_config") continue;
      const Json* ours = at_path(model(name).hf_config, field);
      if (value == "<absent>") {
        EXPECT_EQ(ours, nullptr) << name << " " << field;
      } else {
        ASSERT_NE(ours, nullptr) << name << " " << field;
        EXPECT_EQ(*ours, value) << name << " " << field;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 200);
}

TEST(Catalog, FindsEachEntryByItsOwnConfiguration) {
  for (std::string_view name : catalog_names()) {
    const CatalogEntry& entry = model(name);
    auto found = find_by_config(roles(entry.hf_config));
    ASSERT_TRUE(found) << found.error().message();
    ASSERT_NE(*found, nullptr) << name;
    EXPECT_TRUE((*found)->hf_config == entry.hf_config) << name << " taken for " << (*found)->name;
  }
}

TEST(Catalog, FindsNothingForAModelOfAnotherSize) {
  for (const auto& family : std::filesystem::directory_iterator(MAXPORT_TEST_DATA "/goldens")) {
    if (!family.is_directory()) continue;
    auto found = find_by_config(roles(read_json(family.path() / "hf" / "config.json")));
    ASSERT_TRUE(found) << family.path() << found.error().message();
    EXPECT_EQ(*found, nullptr) << family.path();
  }
}

TEST(Catalog, AnswersNamesInAnyCaseAndSuggestsForOthers) {
  EXPECT_EQ(model("LLAMA3.1-8B").name, "llama3.1-8b");
  EXPECT_EQ(model("qwen3-coder-480b-a35b").hf_config, model("qwen3-480b-a35b").hf_config);
  EXPECT_THAT(find_model("qwen3-0.7b").error().message(), HasSubstr("qwen3-0.6b"));
  EXPECT_EQ(find_model("gpt5").error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(catalog_family("nothing"), "");
}

TEST(Catalog, ListsEveryContradictionBetweenNameAndConfiguration) {
  Json config = model("llama3.1-8b").hf_config;
  config["num_hidden_layers"] = 2;
  config["hidden_size"] = 64;
  config["rms_norm_eps"] = 1e-6;
  auto checked = check_model_name(roles(config), model("llama3.1-8b"), false);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(checked.error().message(), HasSubstr("num_hidden_layers: config.json says 2, llama3.1-8b has 32"));
  EXPECT_THAT(checked.error().message(), HasSubstr("hidden_size: config.json says 64, llama3.1-8b has 4096"));
  EXPECT_THAT(checked.error().message(), HasSubstr("override_model_config=true"));
  auto overridden = check_model_name(roles(config), model("llama3.1-8b"), true);
  ASSERT_TRUE(overridden);
  EXPECT_EQ(overridden->size(), 3u);
}

TEST(Catalog, OnlyWarnsWhenTheArithmeticDiffers) {
  Json config = model("qwen3-4b").hf_config;
  config["rope_parameters"]["rope_theta"] = 5000000.0;
  auto checked = check_model_name(roles(config), model("qwen3-4b"), false);
  ASSERT_TRUE(checked) << checked.error().message();
  ASSERT_EQ(checked->size(), 1u);
  EXPECT_EQ((*checked)[0].field, "rope_theta");
  EXPECT_EQ((*checked)[0].in_config, "5000000");
  EXPECT_FALSE((*checked)[0].decides_shapes);
}

TEST(Catalog, TakesAPaddedVocabularyForEqual) {
  Json config = model("gemma3-4b").hf_config;
  config["text_config"]["vocab_size"] = 262208;
  EXPECT_THAT(*check_model_name(roles(config), model("gemma3-4b"), false), IsEmpty());
  config["text_config"]["vocab_size"] = 262144 + 256;
  EXPECT_FALSE(check_model_name(roles(config), model("gemma3-4b"), false));
}

TEST(Catalog, ComparesSizesThatFollowFromOthers) {
  Json config = model("llama3.1-8b").hf_config;
  config.erase("head_dim");
  EXPECT_THAT(*check_model_name(roles(config), model("llama3.1-8b"), false), IsEmpty());
  config["head_dim"] = nullptr;
  config["num_key_value_heads"] = nullptr;
  EXPECT_THAT(check_model_name(roles(config), model("llama3.1-8b"), false).error().message(),
              HasSubstr("num_key_value_heads: config.json says 32, llama3.1-8b has 8"));
  Json latent = model("deepseek3-671b").hf_config;
  latent.erase("head_dim");
  EXPECT_THAT(*check_model_name(roles(latent), model("deepseek3-671b"), false), IsEmpty());
}

TEST(Catalog, NoticesAModelOfAnotherFamily) {
  auto checked = check_model_name(roles(model("qwen2.5-7b").hf_config), model("llama3.1-8b"), false);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message(), HasSubstr("model_type: config.json says \"qwen2\""));
}

TEST(Catalog, ComparesVisionPartsToo) {
  Json config = model("qwen3-vl-2b").hf_config;
  config["vision_config"]["depth"] = 25;
  EXPECT_THAT(check_model_name(roles(config), model("qwen3-vl-2b"), false).error().message(),
              HasSubstr("vision_config.num_hidden_layers"));
}

}  // namespace
}  // namespace maxport::maxtext
