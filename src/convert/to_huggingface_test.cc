#include "convert/to_huggingface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/testing.h"
#include "storage/faulty_storage.h"

namespace maxport::convert {
namespace {

using ::testing::HasSubstr;
using namespace testing;

class ToHuggingfaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    source_ = open_model();
    ASSERT_TRUE(convert(disk_, *source_, options()));
    checkpoint_ = open("out/0");
  }

  std::unique_ptr<CheckpointSource> open(const std::string& path, std::vector<maxtext::Override> overrides = {}) {
    auto out = CheckpointSource::open(disk_, {path}, settings(std::move(overrides)));
    EXPECT_TRUE(out) << out.error().message();
    return out ? std::move(*out) : nullptr;
  }

  static ToHuggingfaceOptions wanted() {
    ToHuggingfaceOptions out;
    out.output = "hf";
    out.weight_dtype = DType::kBfloat16;
    out.max_shard_size = "100KB";
    return out;
  }

  static Result<ToHuggingfaceReport> back(Storage& storage, const CheckpointSource& source, ToHuggingfaceOptions options) {
    auto conversion = ToHuggingface::prepare(storage, source, std::move(options));
    if (!conversion) return std::unexpected(conversion.error());
    return (*conversion)->run();
  }

  MemoryStorage disk_;
  std::unique_ptr<ModelSource> source_;
  std::unique_ptr<CheckpointSource> checkpoint_;
};

TEST_F(ToHuggingfaceTest, GivesBackEveryTensorOfTheSource) {
  auto report = back(disk_, *checkpoint_, wanted());
  ASSERT_TRUE(report) << report.error().message();
  auto model = huggingface::ModelDirectory::open(disk_, "hf");
  ASSERT_TRUE(model) << model.error().message();
  const auto& before = source_->directory().tensors();
  ASSERT_EQ((*model)->tensors().size(), before.size());
  for (const auto& [name, entry] : before) {
    auto after = (*model)->find(name);
    ASSERT_TRUE(after) << after.error().message();
    EXPECT_EQ(after->info->shape, entry.info->shape) << name;
    Bytes a(entry.info->byte_size()), b(after->info->byte_size());
    ASSERT_EQ(a.size(), b.size());
    ASSERT_TRUE(source_->directory().read(entry, 0, a));
    ASSERT_TRUE((*model)->read(*after, 0, b));
    // head_dim is 24, so the queries may differ in the last bit; everything else is exact.
    if (name.find("q_proj") == std::string_view::npos) {
      EXPECT_EQ(a, b) << name;
    }
  }
  ASSERT_EQ(report->inexact.size(), 1u);
  EXPECT_EQ(report->inexact[0].step, "query scale");
  EXPECT_EQ(report->inexact[0].tensors.size(), 3u);
  EXPECT_THAT(report->inexact[0].tensors[0], HasSubstr("q_proj.weight"));
  EXPECT_GT(report->files, 2u);
}

TEST_F(ToHuggingfaceTest, WritesTheSameBytesForAnyThreads) {
  ASSERT_TRUE(back(disk_, *checkpoint_, wanted()));
  const auto want = files(disk_, "hf");
  for (int threads : {2, 5}) {
    MemoryStorage other;
    ToHuggingfaceOptions options = wanted();
    options.threads = threads;
    ASSERT_TRUE(back(other, *checkpoint_, options));
    EXPECT_EQ(files(other, "hf"), want) << threads;
  }
}

TEST_F(ToHuggingfaceTest, ResumesToTheSameBytesAfterAFailureAtAnyMoment) {
  MemoryStorage undisturbed;
  ASSERT_TRUE(back(undisturbed, *checkpoint_, wanted()));
  const auto want = files(undisturbed, "hf");
  size_t failures = 0;
  for (uint64_t step = 0;; step += 1 + step / 40) {
    MemoryStorage disk;
    FaultyStorage faulty(disk);
    faulty.stop_changes_after(step, step % 2 ? ENOSPC : EIO);
    if (back(faulty, *checkpoint_, wanted())) break;
    ++failures;
    const auto published = files(disk, "hf");
    if (!published.empty()) {
      EXPECT_EQ(published, want) << "after change " << step;
      continue;
    }
    auto again = back(disk, *checkpoint_, wanted());
    ASSERT_TRUE(again) << "after change " << step << ": " << again.error().message();
    ASSERT_EQ(files(disk, "hf"), want) << "after change " << step;
  }
  EXPECT_GT(failures, 20u);
}

TEST_F(ToHuggingfaceTest, FindsScanLayersAndObjectsToAContradiction) {
  EXPECT_TRUE(checkpoint_->layout().scan_layers);
  auto contradicted = CheckpointSource::open(disk_, {"out/0"}, settings({{"scan_layers", "false"}}));
  ASSERT_FALSE(contradicted);
  EXPECT_THAT(contradicted.error().message(), HasSubstr("scan_layers"));
}

TEST_F(ToHuggingfaceTest, CutsPaddingOffAndNamesAShapeThatDoesNotFit) {
  auto padded = open_model(kLlama, {{"scan_layers", "true"}, {"vocab_size", "256"}});
  ToMaxtextOptions options = testing::options();
  options.base_output_directory = "padded";
  ASSERT_TRUE(convert(disk_, *padded, options));
  auto checkpoint = open("padded/0");
  ASSERT_NE(checkpoint, nullptr);
  ASSERT_TRUE(back(disk_, *checkpoint, wanted()));
  MemoryStorage plain;
  ASSERT_TRUE(back(plain, *checkpoint_, wanted()));
  EXPECT_EQ(files(disk_, "hf"), files(plain, "hf"));
}

TEST_F(ToHuggingfaceTest, NeverReplacesAModelUnasked) {
  ASSERT_TRUE(back(disk_, *checkpoint_, wanted()));
  EXPECT_FALSE(back(disk_, *checkpoint_, wanted()));
  ToHuggingfaceOptions options = wanted();
  options.overwrite = true;
  EXPECT_TRUE(back(disk_, *checkpoint_, options));
}

TEST_F(ToHuggingfaceTest, FindsAnyChangeOfWhatItWrote) {
  auto conversion = ToHuggingface::prepare(disk_, *checkpoint_, wanted());
  ASSERT_TRUE(conversion) << conversion.error().message();
  ASSERT_TRUE((*conversion)->run());
  auto good = (*conversion)->check_output();
  ASSERT_TRUE(good) << good.error().message();
  for (const auto& [path, text] : files(disk_, "hf")) {
    if (!path.ends_with(".safetensors")) continue;
    for (const size_t at : {text.size() - 1, text.size() / 2}) {
      std::string changed = text;
      changed[at] = static_cast<char>(changed[at] ^ 4);
      ASSERT_TRUE(disk_.write_text(path, changed));
      auto found = (*conversion)->check_output();
      ASSERT_FALSE(found) << path << " byte " << at;
      EXPECT_EQ(found.error().kind(), ErrorKind::kCorruptData);
      ASSERT_TRUE(disk_.write_text(path, text));
    }
  }
  EXPECT_TRUE((*conversion)->check_output());
}

}  // namespace
}  // namespace maxport::convert
