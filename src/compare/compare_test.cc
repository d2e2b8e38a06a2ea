#include "compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compare/report_text.h"
#include "convert/testing.h"
#include "huggingface/model_directory.h"

namespace maxport::compare {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A golden model, and its scanned and unscanned checkpoints, in memory.
class Compare : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directories("hf"));
    for (const auto& [path, text] : convert::testing::files(local_storage(), convert::testing::kLlama))
      ASSERT_TRUE(disk_.write_text("hf/" + path.substr(path.rfind('/') + 1), text));
    convert("scanned", {{"scan_layers", "true"}}, DType::kBfloat16);
    convert("unscanned", {{"scan_layers", "false"}}, DType::kBfloat16);
  }

  void convert(const std::string& out, std::vector<maxtext::Override> overrides, DType dtype, const std::string& model = "hf") {
    auto source = convert::ModelSource::open(disk_, {model}, convert::testing::settings(std::move(overrides)));
    ASSERT_TRUE(source) << source.error().message();
    auto options = convert::testing::options();
    options.base_output_directory = out;
    options.save_dtype = dtype;
    auto report = convert::testing::convert(disk_, **source, options);
    ASSERT_TRUE(report) << report.error().message();
  }

  Report run(const std::string& a, const std::string& b, const Options& options = {}) {
    auto out = compare(disk_, a, b, options);
    EXPECT_TRUE(out) << out.error().message();
    return out ? std::move(*out) : Report{};
  }

  /// A copy of the model in which the stored element `at` of a bfloat16 tensor has other bits.
  void change(const std::string& folder, const std::string& tensor, uint64_t at, uint16_t bits) {
    ASSERT_TRUE(disk_.make_directories(folder));
    auto model = huggingface::ModelDirectory::open(disk_, "hf");
    ASSERT_TRUE(model);
    auto found = (*model)->find(tensor);
    ASSERT_TRUE(found);
    for (const auto& [path, text] : convert::testing::files(disk_, "hf")) {
      std::string changed = text;
      if (path.ends_with(".safetensors")) std::memcpy(&changed[found->info->begin + 2 * at], &bits, 2);
      ASSERT_TRUE(disk_.write_text(folder + path.substr(path.rfind('/')), changed));
    }
  }

  static const TensorComparison& find(const Report& report, std::string_view name) {
    const auto at = std::ranges::find(report.tensors, name, &TensorComparison::name);
    EXPECT_NE(at, report.tensors.end()) << name;
    return *at;
  }

  MemoryStorage disk_;
};

const std::string kDown = "model.layers.1.mlp.down_proj.weight";

TEST_F(Compare, FindsAllThreeFormsOfAModelEqualBothWaysRound) {
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {"hf", "hf"}, {"hf", "scanned"}, {"scanned", "hf"}, {"hf", "unscanned/0"}, {"unscanned/0/items", "hf"},
           {"scanned", "unscanned"}, {"unscanned", "scanned"}, {"scanned", "scanned/0/items"}}) {
    const Report report = run(a, b, {.threads = 2});
    EXPECT_TRUE(report.equal()) << a << " " << b << "\n" << to_json(report, false).dump(1);
    EXPECT_GT(report.tensors.size(), 5u);
    for (const TensorComparison& tensor : report.tensors) {
      EXPECT_TRUE(tensor.compared) << tensor.name;
      EXPECT_EQ(tensor.statistics.elements, static_cast<uint64_t>(element_count(tensor.a->shape))) << tensor.name;
    }
  }
}

TEST_F(Compare, NamesTensorsOfModelsAndOfLayoutsThatDifferByTheirHuggingFaceNames) {
  auto model = huggingface::ModelDirectory::open(disk_, "hf");
  ASSERT_TRUE(model);
  for (const char* other : {"hf", "unscanned"}) {
    const Report report = other == std::string("hf") ? run("hf", "hf") : run("scanned", other);
    ASSERT_EQ(report.tensors.size(), (*model)->tensors().size());
    for (const TensorComparison& tensor : report.tensors) EXPECT_TRUE((*model)->tensors().contains(tensor.name)) << tensor.name;
  }
}

TEST_F(Compare, FindsOneChangedElementInEveryPairOfForms) {
  change("other", kDown, 77, 0x4049);
  convert("other_scanned", {{"scan_layers", "true"}}, DType::kBfloat16, "other");
  convert("other_unscanned", {{"scan_layers", "false"}}, DType::kBfloat16, "other");
  const auto columns = find(run("hf", "hf"), kDown).a->shape[1];
  const std::vector<int64_t> want{77 / columns, 77 % columns};
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {"other", "hf"}, {"other", "scanned"}, {"other_scanned", "hf"}, {"other", "unscanned"}, {"other_unscanned", "hf"},
           {"other_scanned", "unscanned"}, {"other_unscanned", "scanned"}, {"other_scanned", "scanned"}}) {
    const Report report = run(a, b);
    EXPECT_FALSE(report.equal()) << a << " " << b;
    EXPECT_EQ(report.count(Status::kDifferent), 1u) << a << " " << b;
    const auto tensor = std::ranges::find(report.tensors, Status::kDifferent, &TensorComparison::status);
    ASSERT_NE(tensor, report.tensors.end());
    EXPECT_EQ(tensor->statistics.differing, 1u);
    EXPECT_EQ(number(DType::kBfloat16, tensor->statistics.first_a.bits.data()), 3.140625) << a << " " << b;
    ASSERT_TRUE(tensor->first);
    if (a == "other_scanned" && b == "scanned") continue;  // by parameter name, no map
    if (tensor->first->hf_tensor.empty()) {
      EXPECT_EQ(tensor->first->tensor, kDown);
      EXPECT_EQ(tensor->first->index, want);
    } else {
      EXPECT_EQ(tensor->first->hf_tensor, kDown) << a << " " << b;
      EXPECT_EQ(tensor->first->hf_index, want) << a << " " << b;
    }
  }
}

TEST_F(Compare, CountsOtherTypesAsDifferencesUnlessTheyAreIgnored) {
  convert("wide", {{"scan_layers", "true"}}, DType::kFloat32);
  const Report derived = run("hf", "wide");
  EXPECT_FALSE(derived.equal());
  EXPECT_EQ(derived.count(Status::kOtherDtype), derived.tensors.size());
  EXPECT_TRUE(derived.equal(true)) << "derived in float32 nothing is rounded";
  // As stored, the scaled queries of the narrow checkpoint are rounded.
  for (const char* narrow : {"scanned", "unscanned"}) {
    const Report report = run("wide", narrow);
    EXPECT_FALSE(report.equal());
    EXPECT_EQ(report.count(Status::kOtherDtype), report.tensors.size());
    for (const TensorComparison& tensor : report.tensors) {
      const bool query = tensor.name.contains("query") || tensor.name.contains("q_proj");
      EXPECT_EQ(tensor.statistics.differing > 0, query) << tensor.name;
    }
  }
}

TEST_F(Compare, PassesDifferencesWithinTheToleranceOnly) {
  change("other", kDown, 0, 0x4049);
  const double difference = find(run("other", "scanned"), "decoder.layers.mlp.wo.kernel").statistics.max_difference;
  ASSERT_GT(difference, 1);
  const Report within = run("other", "scanned", {.tolerance = difference});
  EXPECT_TRUE(within.equal());
  EXPECT_EQ(within.count(Status::kWithinTolerance), 1u);
  EXPECT_FALSE(run("other", "scanned", {.tolerance = difference * 0.999}).equal());
  EXPECT_FALSE(compare(disk_, "other", "scanned", {.tolerance = -1}));
}

TEST_F(Compare, FindsNanOfEqualBitsEqualAndSaysSo) {
  change("nan", kDown, 5, 0x7fc0);
  convert("nan_scanned", {{"scan_layers", "true"}}, DType::kBfloat16, "nan");
  const Report report = run("nan", "nan_scanned");
  EXPECT_TRUE(report.equal());
  EXPECT_THAT(summary_line(report, false), HasSubstr("1 NaN have equal bits"));
  EXPECT_FALSE(run("nan", "scanned", {.tolerance = 1e30}).equal());
}

TEST_F(Compare, ListsTensorsThatOneSideLacks) {
  auto spec = disk_.read_text("hf/model.safetensors");
  ASSERT_TRUE(spec);
  ASSERT_TRUE(disk_.make_directories("fewer"));
  ASSERT_TRUE(disk_.write_text("fewer/config.json", *disk_.read_text("hf/config.json")));
  // Under another name the tensor is missing and another is there instead.
  std::string renamed = *spec;
  const size_t at = renamed.find(kDown);
  ASSERT_NE(at, std::string::npos);
  renamed[at + kDown.find("down")] = 'D';
  ASSERT_TRUE(disk_.write_text("fewer/model.safetensors", renamed));
  const Report report = run("hf", "fewer");
  EXPECT_FALSE(report.equal());
  EXPECT_EQ(report.count(Status::kOnlyInA), 1u);
  EXPECT_EQ(report.count(Status::kOnlyInB), 1u);
  EXPECT_EQ(find(report, kDown).status, Status::kOnlyInA);
  EXPECT_FALSE(find(report, kDown).b);

  const Report mixed = run("fewer", "scanned");
  EXPECT_FALSE(mixed.equal());
  EXPECT_EQ(find(mixed, "decoder.layers.mlp.wo.kernel").status, Status::kOnlyInB) << "it cannot be derived";
  EXPECT_EQ(mixed.count(Status::kOnlyInA), 1u);
}

TEST_F(Compare, SaysWhatItCannotRead) {
  auto missing = compare(disk_, "hf", "nowhere", {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::kNotFound);
  auto file = compare(disk_, "hf/model.safetensors", "scanned", {});
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr("model folder"));
  EXPECT_TRUE(run("hf/model.safetensors", "hf").equal());
}

}  // namespace
}  // namespace maxport::compare
