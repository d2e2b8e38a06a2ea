#include "maxtext/arguments.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace maxport::maxtext {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr ProgramOption kProgram[] = {
    {.name = "dry_run", .value = OptionValue::kNone, .help = "plan only"},
    {.name = "compression", .value = OptionValue::kRequired, .value_name = "KIND", .help = ""},
    {.name = "drop", .value = OptionValue::kRequired, .value_name = "NAME", .help = "", .repeatable = true},
};

Result<ConversionArguments> parse(std::vector<std::string> words, ConversionCommand command = ConversionCommand::kToMaxtext) {
  return parse_conversion_arguments(command, words, kProgram);
}
ConversionArguments parsed(std::vector<std::string> words, ConversionCommand command = ConversionCommand::kToMaxtext) {
  auto out = parse(std::move(words), command);
  EXPECT_TRUE(out) << out.error().message();
  return out ? *out : ConversionArguments();
}
std::string refused(std::vector<std::string> words, ConversionCommand command = ConversionCommand::kToMaxtext) {
  auto out = parse(std::move(words), command);
  EXPECT_FALSE(out);
  return out ? "" : out.error().message();
}

TEST(Arguments, ReadTheCommandLineOfTheReport) {
  const auto arguments = parsed({"src/MaxText/configs/base.yml", "model_name=llama3.1-8b", "base_output_directory=/out",
                                 "--hf_model_path=/hf", "scan_layers=true", "--lazy_load_tensors=true",
                                 "--simulated_cpu_devices_count=1", "hardware=cpu", "--save_dtype", "float32"});
  EXPECT_EQ(arguments.base_file, "src/MaxText/configs/base.yml");
  EXPECT_EQ(arguments.hf_model_path, "/hf");
  EXPECT_TRUE(arguments.lazy_load_tensors);
  EXPECT_EQ(arguments.simulated_cpu_devices_count, 1);
  EXPECT_EQ(arguments.save_dtype, "float32");
  ASSERT_EQ(arguments.overrides.size(), 4u);
  EXPECT_EQ(arguments.overrides[0].key, "model_name");
  EXPECT_EQ(arguments.overrides[3].value, "cpu");
}

TEST(Arguments, HaveMaxTextsDefaults) {
  const auto arguments = parsed({});
  EXPECT_TRUE(arguments.lazy_load_tensors);
  EXPECT_EQ(arguments.save_dtype, "bfloat16");
  EXPECT_FALSE(arguments.save_dtype_given);
  EXPECT_EQ(arguments.simulated_cpu_devices_count, 16);
  EXPECT_EQ(arguments.eager_load_method, EagerLoadMethod::kSafetensors);
  EXPECT_FALSE(arguments.hf_model_path);
}

TEST(Arguments, TakeItsOwnOptionsInEverySpelling) {
  for (const auto& words : std::vector<std::vector<std::string>>{{"--lazy_load_tensors=false"}, {"--lazy-load-tensors", "no"},
                                                                 {"lazy_load_tensors=False"}, {"lazy-load-tensors=0"},
                                                                 {"--nolazy_load_tensors"}, {"-lazy_load_tensors=f"}})
    EXPECT_FALSE(parsed(words).lazy_load_tensors) << words[0];
  EXPECT_EQ(parsed({"save_dtype=float32"}).save_dtype, "float32");
  EXPECT_EQ(parsed({"revision=main"}).revision, "main");
  EXPECT_EQ(parsed({"eager_load_method=transformers"}).eager_load_method, EagerLoadMethod::kTransformers);
  EXPECT_EQ(parsed({"simulated_cpu_devices_count=2"}).simulated_cpu_devices_count, 2);
  EXPECT_EQ(parsed({"--hf_model_path=a", "hf_model_path=b"}).hf_model_path, "b") << "the last counts";
}

TEST(Arguments, TakeSettingsAlsoWithDashes) {
  const auto arguments = parsed({"--scan_layers=false", "--base-output-directory", "/x", "base-emb-dim=3"});
  ASSERT_EQ(arguments.overrides.size(), 3u);
  EXPECT_EQ(arguments.overrides[1].key, "base_output_directory");
  EXPECT_EQ(arguments.overrides[1].value, "/x");
}

TEST(Arguments, TakeToHuggingfacesFlags) {
  const auto arguments = parsed({"base.yml", "load_parameters_path=/c/0/items", "--override_model_architecture",
                                 "--hf_model_path", "/hf"},
                                ConversionCommand::kToHuggingface);
  EXPECT_TRUE(arguments.override_model_architecture);
  EXPECT_EQ(arguments.hf_model_path, "/hf");
  EXPECT_FALSE(parsed({"--override_model_architecture", "--nooverride_model_architecture"}, ConversionCommand::kToHuggingface)
                   .override_model_architecture);
  EXPECT_THAT(refused({"--simulated_cpu_devices_count=4"}, ConversionCommand::kToHuggingface), HasSubstr("neither an option"));
}

TEST(Arguments, TakeTheProgramsOwnOptions) {
  const auto arguments = parsed({"--dry-run", "--compression=zstd", "--drop", "a", "--drop=b"});
  EXPECT_TRUE(arguments.option_is_on("dry_run"));
  EXPECT_EQ(arguments.option_value("compression"), "zstd");
  EXPECT_THAT(arguments.options.at("drop"), ElementsAre("a", "b"));
  EXPECT_FALSE(parsed({"--nodry_run"}).option_is_on("dry_run"));
  EXPECT_EQ(parsed({"--compression=a", "--compression=b"}).options.at("compression").size(), 1u);
  EXPECT_EQ(parsed({}).option_value("compression"), std::nullopt);
}

TEST(Arguments, NameTheNearestForWhatIsUnknown) {
  EXPECT_THAT(refused({"--lazy_load_tensor=true"}), HasSubstr("did you mean lazy_load_tensors"));
  EXPECT_THAT(refused({"lazy_load_tensor=true"}), HasSubstr("did you mean lazy_load_tensors"));
  EXPECT_THAT(refused({"--dryrun"}), HasSubstr("dry_run"));
  EXPECT_THAT(refused({"--scan_layerz=true"}), HasSubstr("scan_layers"));
  EXPECT_THAT(refused({"stray"}), HasSubstr("neither key=value nor an option nor a .yml file"));
}

TEST(Arguments, LeaveUnknownKeysToTheSettings) {
  EXPECT_EQ(parsed({"mine.yml", "a_setting_of_tomorrow=1"}).overrides[0].key, "a_setting_of_tomorrow");
}

TEST(Arguments, RefuseBadValuesAndMissingOnes) {
  EXPECT_THAT(refused({"--lazy_load_tensors=maybe"}), HasSubstr("--lazy_load_tensors is 'maybe', expected true or false"));
  EXPECT_THAT(refused({"--save_dtype=float16"}), HasSubstr("expected one of float32, bfloat16, float8_e4m3fn"));
  for (const char* count : {"0", "-1", "1.5", "", "99999999999", "2x"})
    EXPECT_THAT(refused({std::string("--simulated_cpu_devices_count=") + count}), HasSubstr("an integer from 1 to 65536"));
  EXPECT_THAT(refused({"--hf_model_path"}), HasSubstr("--hf_model_path needs a value"));
  EXPECT_THAT(refused({"--hf_model_path", "--dry_run"}), HasSubstr("needs a value"));
  EXPECT_THAT(refused({"--hf_model_path", "model_name=x"}), HasSubstr("needs a value"));
  EXPECT_THAT(refused({"a.yml", "b.yaml"}), HasSubstr("two configuration files, a.yml and b.yaml"));
  EXPECT_THAT(refused({"--dry_run=perhaps"}), HasSubstr("--dry_run"));
}

TEST(Arguments, AskForHelp) {
  EXPECT_TRUE(parsed({"-h"}).help);
  EXPECT_TRUE(parsed({"model_name=x", "--help"}).help);
  EXPECT_EQ(maxtext_option_help(ConversionCommand::kToMaxtext).size(), 6u);
}

TEST(Arguments, ReadTheArgumentsOfEveryGolden) {
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MAXPORT_TEST_DATA "/goldens")) {
    if (entry.path().filename() != "expected.json") continue;
    std::ifstream file(entry.path());
    const Json golden = Json::parse(file);
    if (!golden.contains("args")) continue;
    parsed(golden.at("args").get<std::vector<std::string>>());
    ++read;
  }
  EXPECT_GT(read, 60);
}

}  // namespace
}  // namespace maxport::maxtext
