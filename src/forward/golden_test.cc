// Whole forward passes: every family from the Hugging Face folder and from checkpoints of both forms that are converted
// in memory, against transformers' logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "convert/testing.h"
#include "forward/comparison.h"
#include "forward/huggingface/families.h"
#include "forward/inputs.h"
#include "forward/maxtext/families.h"
#include "forward/open.h"

namespace maxport::forward {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string name;
  double tolerance = 2e-5;  ///< largest difference over largest |logit|
  bool scans = true;        ///< MaxText can stack its layers
};

std::string folder(const std::string& name) { return fmt::format("{}/goldens/{}/hf", MAXPORT_TEST_DATA, name); }

Golden golden(const std::string& name) {
  auto out = read_golden(local_storage(), fmt::format("{}/goldens/{}/logits.safetensors", MAXPORT_TEST_DATA, name));
  EXPECT_TRUE(out) << out.error().message();
  return std::move(*out);
}

Result<Matrix> logits_of(Result<std::unique_ptr<Decoder>> decoder, const Batch& batch) {
  if (!decoder) return std::unexpected(decoder.error());
  return run(**decoder, batch);
}

Comparison compare(const Result<Matrix>& logits, const Matrix& reference) {
  EXPECT_TRUE(logits) << logits.error().message();
  auto out = compare_logits(*logits, reference);
  EXPECT_TRUE(out) << out.error().message();
  return *out;
}

double relative(const Comparison& c) { return c.max_abs_difference / c.largest_reference; }

/// A float32 checkpoint of a model in memory.
void convert_to(MemoryStorage& disk, const std::string& source, bool scanned) {
  auto model = convert::testing::open_model(source, {{"scan_layers", scanned ? "true" : "false"}});
  auto options = convert::testing::options();
  options.save_dtype = DType::kFloat32;
  const auto report = convert::testing::convert(disk, *model, options);
  ASSERT_TRUE(report) << report.error().message();
}

class Families : public ::testing::TestWithParam<Case> {
 protected:
  void expect_near(const Comparison& c) const {
    EXPECT_LE(relative(c), GetParam().tolerance);
    EXPECT_EQ(c.argmax_agreement(), 1);
    EXPECT_LT(c.max_kl, 1e-6);
  }
  const Golden golden_ = golden(GetParam().name);
};

TEST_P(Families, AreWhatTransformersComputesFromItsOwnLayout) {
  expect_near(
      compare(logits_of(open_huggingface(local_storage(), folder(GetParam().name)), golden_.batch), *golden_.logits));
}

TEST_P(Families, AreWhatTransformersComputesFromMaxTextsLayout) {
  for (const bool scanned : {true, false}) {
    if (scanned && !GetParam().scans) continue;
    MemoryStorage disk;
    convert_to(disk, folder(GetParam().name), scanned);
    auto decoder = open_maxtext(disk, {"out/0"});
    ASSERT_TRUE(decoder) << decoder.error().message();
    EXPECT_THAT((*decoder)->description(), HasSubstr(scanned ? ", scanned" : "unscanned"));
    expect_near(compare(logits_of(std::move(decoder), golden_.batch), *golden_.logits));
  }
}

// Logits that hardly depend on positions would let wrong rotary angles pass.
TEST_P(Families, SeeTwoPositionsExchanged) {
  Batch exchanged = golden_.batch;
  std::swap(exchanged.positions[5], exchanged.positions[6]);
  const auto c =
      compare(logits_of(open_huggingface(local_storage(), folder(GetParam().name)), exchanged), *golden_.logits);
  EXPECT_GT(relative(c), 20 * GetParam().tolerance);
}

INSTANTIATE_TEST_SUITE_P(Goldens, Families,
                         ::testing::Values(Case{"llama3.1-8b"}, Case{"mixtral-8x7b"}, Case{"qwen3-30b-a3b"},
                                           Case{"gpt-oss-20b"}, Case{"deepseek2-16b"}, Case{"deepseek3-671b"},
                                           Case{"deepseek3.2-671b"}, Case{"qwen2.5-1.5b"}, Case{"qwen3-0.6b"},
                                           Case{"gemma2-2b"}, Case{"gemma4-26b"}, Case{"gemma4-e2b", 2e-5, false},
                                           Case{"olmo3-7b"}, Case{"qwen3-next-80b-a3b", 1e-4},
                                           Case{"qwen3.5-35b-a3b", 1e-4}, Case{"qwen3-vl-2b", 2e-5, false},
                                           Case{"qwen3-omni-30b-a3b", 2e-5, false}),
                         [](const auto& test) {
                           std::string out = test.param.name;
                           std::erase_if(out, [](char c) { return c == '.' || c == '-'; });
                           return out;
                         });

// MaxText rounds gemma3's embedding scale to bfloat16, transformers in float32 does not.
TEST(Gemma3, DiffersBetweenTheLibrariesByTheRoundingOfItsEmbeddingScaleAlone) {
  const Golden reference = golden("gemma3-4b");
  const Result<Matrix> plain = logits_of(open_huggingface(local_storage(), folder("gemma3-4b")), reference.batch);
  EXPECT_LE(relative(compare(plain, *reference.logits)), 2e-5);
  const Result<Matrix> rounded =
      logits_of(open_huggingface(local_storage(), folder("gemma3-4b"), true), reference.batch);
  for (const bool scanned : {true, false}) {
    MemoryStorage disk;
    convert_to(disk, folder("gemma3-4b"), scanned);
    const Result<Matrix> maxtext = logits_of(open_maxtext(disk, {"out/0"}), reference.batch);
    const Comparison with_transformers = compare(maxtext, *reference.logits);
    EXPECT_LE(relative(with_transformers), 3e-3);
    EXPECT_GE(relative(with_transformers), 1e-4);
    EXPECT_EQ(with_transformers.argmax_agreement(), 1);
    const Result<Matrix> imitated =
        logits_of(open_maxtext(disk, {.path = "out/0", .round_tied_table = true}), reference.batch);
    EXPECT_LE(relative(compare(imitated, *rounded)), 2e-5);
  }
}

// Halves one tensor of bfloat16 in a copy of the folder, by its exponent.
void halve(MemoryStorage& disk, const std::string& source, const std::string& name) {
  ASSERT_TRUE(disk.make_directories("model"));
  ASSERT_TRUE(disk.write_text("model/config.json", *local_storage().read_text(source + "/config.json")));
  std::string text = *local_storage().read_text(source + "/model.safetensors");
  auto model = huggingface::ModelDirectory::open(local_storage(), source);
  ASSERT_TRUE(model);
  const auto entry = (*model)->find(name);
  ASSERT_TRUE(entry) << entry.error().message();
  ASSERT_EQ(entry->info->dtype, DType::kBfloat16);
  for (uint64_t i = entry->info->begin; i < entry->info->end; i += 2) {
    const auto high = static_cast<uint8_t>(text[i + 1]), low = static_cast<uint8_t>(text[i]);
    const unsigned bits = high << 8 | low, exponent = bits >> 7 & 0xff;
    const unsigned halved = exponent > 0 ? bits - 0x80 : bits & 0x8000;
    text[i] = static_cast<char>(halved & 0xff);
    text[i + 1] = static_cast<char>(halved >> 8);
  }
  ASSERT_TRUE(disk.write_text("model/model.safetensors", text));
}

TEST(HalvedQuery, IsSeenInBothLayouts) {
  const Golden reference = golden("llama3.1-8b");
  MemoryStorage disk;
  halve(disk, folder("llama3.1-8b"), "model.layers.1.self_attn.q_proj.weight");
  const Result<Matrix> changed = logits_of(open_huggingface(disk, "model"), reference.batch);
  EXPECT_GT(relative(compare(changed, *reference.logits)), 1e-3);
  auto source = convert::ModelSource::open(disk, {"model"}, convert::testing::settings());
  ASSERT_TRUE(source) << source.error().message();
  auto options = convert::testing::options();
  options.save_dtype = DType::kFloat32;
  ASSERT_TRUE(convert::testing::convert(disk, **source, options));
  const Result<Matrix> maxtext = logits_of(open_maxtext(disk, {"out/0"}), reference.batch);
  EXPECT_GT(relative(compare(maxtext, *reference.logits)), 1e-3);
  EXPECT_LE(relative(compare(maxtext, *changed)), 2e-5);
}

TEST(Opening, TellsTheLayoutsApartAndNamesWhatItCannotRun) {
  EXPECT_TRUE(*is_huggingface(local_storage(), folder("llama3.1-8b")));
  MemoryStorage disk;
  convert_to(disk, folder("llama3.1-8b"), true);
  EXPECT_FALSE(*is_huggingface(disk, "out/0"));
  EXPECT_EQ((*open_model(disk, {"out/0"}))->description(), "MaxText llama2, scanned");
  ASSERT_TRUE(disk.make_directories("other"));
  ASSERT_TRUE(disk.write_text("other/config.json", R"({"model_type": "gpt2"})"));
  ASSERT_TRUE(disk.write_text("other/model.safetensors",
                              *local_storage().read_text(folder("llama3.1-8b") + "/model.safetensors")));
  const auto unknown = open_model(disk, {"other"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(unknown.error().message(), HasSubstr("llama"));
}

TEST(Opening, TakesSettingsFromTheCommandLineAndAsksForThem) {
  MemoryStorage disk;
  convert_to(disk, folder("llama3.1-8b"), true);
  const Golden reference = golden("llama3.1-8b");
  const auto wrong = compare(logits_of(open_maxtext(disk, {"out/0", {{"rope_use_scale", "false"}}}), reference.batch),
                             *reference.logits);
  EXPECT_GT(relative(wrong), 1e-4);
  ASSERT_TRUE(disk.remove_all("out/0/maxport.json"));
  const auto asked = open_maxtext(disk, {"out/0"});
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().message(), HasSubstr("model_name="));
  const auto sizes = logits_of(open_maxtext(disk, {"out/0", {{"model_name", "llama3.1-8b"}}}), reference.batch);
  ASSERT_FALSE(sizes);  // that model is larger
  EXPECT_EQ(sizes.error().kind(), ErrorKind::kInvalidArgument);
}

TEST(Opening, RefusesSizesThatCannotBe) {
  MemoryStorage disk;
  convert_to(disk, folder("qwen3-next-80b-a3b"), true);
  for (const char* setting : {"param_scan_axis=-1", "partial_rotary_factor=3.0", "gdn_key_head_dim=-8", "head_dim=0",
                              "gdn_num_key_heads=0", "num_experts_per_tok=9", "base_num_decoder_layers=12"}) {
    const std::string text = setting;
    const size_t equals = text.find('=');
    const auto out = logits_of(open_maxtext(disk, {"out/0", {{text.substr(0, equals), text.substr(equals + 1)}}}),
                               golden("qwen3-next-80b-a3b").batch);
    ASSERT_FALSE(out) << setting;
    EXPECT_EQ(out.error().kind(), ErrorKind::kInvalidArgument) << setting << ": " << out.error().message();
  }
}

TEST(Running, RefusesIdsBeyondTheVocabularyAndAnEmptyBatch) {
  Batch beyond;
  beyond.append({1, 160});
  const auto logits = logits_of(open_huggingface(local_storage(), folder("llama3.1-8b")), beyond);
  ASSERT_FALSE(logits);
  EXPECT_THAT(logits.error().message(), HasSubstr("160"));
  EXPECT_FALSE(logits_of(open_huggingface(local_storage(), folder("llama3.1-8b")), {}));
}

TEST(Running, StopsBetweenLayersWhenAsked) {
  auto decoder = open_huggingface(local_storage(), folder("llama3.1-8b"));
  ASSERT_TRUE(decoder);
  const auto out = run(**decoder, golden("llama3.1-8b").batch, [](int64_t layer) { return layer < 2; });
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().kind(), ErrorKind::kInterrupted);
}

}  // namespace
}  // namespace maxport::forward
