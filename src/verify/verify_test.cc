#include "verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "convert/testing.h"

namespace maxport::verify {
namespace {

using ::testing::HasSubstr;
using convert::testing::files;
using convert::testing::open_model;
using convert::testing::options;

class Verify : public ::testing::Test {
 protected:
  void SetUp() override {
    source_ = open_model();
    auto report = convert::testing::convert(disk_, *source_, options());
    ASSERT_TRUE(report) << report.error().message();
  }

  /// True when the checkpoint is found good; anything else counts as noticed.
  bool passes(Storage& disk, const Options& how = {}) {
    auto report = verify_checkpoint(disk, "out/0", how);
    return report && report->good();
  }

  static std::unique_ptr<MemoryStorage> copy(Storage& from) {
    auto out = std::make_unique<MemoryStorage>();
    for (const auto& [path, text] : files(from, "out")) {
      EXPECT_TRUE(out->make_directories(path.substr(0, path.rfind('/'))));
      EXPECT_TRUE(out->write_text(path, text));
    }
    return out;
  }

  MemoryStorage disk_;
  std::unique_ptr<convert::ModelSource> source_;
};

TEST_F(Verify, PassesWhatWasJustWrittenWithAndWithoutItsSource) {
  auto report = verify_checkpoint(disk_, "out/0", {.threads = 2, .source = source_.get()});
  ASSERT_TRUE(report) << report.error().message();
  for (const Damage& damage : report->damages) ADD_FAILURE() << damage.leaf << ": " << damage.text;
  EXPECT_TRUE(report->recorded);
  EXPECT_TRUE(report->sourced);
  EXPECT_EQ(report->leaves, source_->plan().leaves.size());
  EXPECT_GT(report->chunks, 10u);
}

// The text of the markers is free, and the record is nothing that a reader returns.
TEST_F(Verify, NoticesEveryBitFlipInWhatReadersReturn) {
  std::mt19937_64 random(5);
  const auto all = files(disk_, "out/0");
  size_t flips = 0;
  for (const auto& [path, text] : all) {
    if (path.ends_with("commit_success.txt") || text.empty()) continue;
    auto damaged = copy(disk_);
    for (int trial = 0; trial < 120; ++trial) {
      std::string flipped = text;
      const size_t bit = random() % (text.size() * 8);
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      ASSERT_TRUE(damaged->write_text(path, flipped));
      if (path.ends_with("maxport.json")) {
        // Members that no reader looks at may change freely; what is returned must then be the same.
        if (passes(*damaged)) {
          EXPECT_TRUE(passes(*damaged, {.source = source_.get()})) << path << " bit " << bit;
        }
      } else {
        EXPECT_FALSE(passes(*damaged)) << path << " bit " << bit;
      }
      ++flips;
    }
  }
  EXPECT_GT(flips, 500u);
}

TEST_F(Verify, NoticesEachDeletedTruncatedAndSwappedFile) {
  const auto all = files(disk_, "out/0");
  std::vector<std::string> data;
  for (const auto& [path, text] : all) {
    if (path.ends_with("maxport.json")) continue;  // without it there is nothing to compare with, which is said
    auto damaged = copy(disk_);
    ASSERT_TRUE(damaged->remove_all(path));
    EXPECT_FALSE(passes(*damaged)) << "deleted " << path;
    if (path.ends_with("commit_success.txt")) continue;
    ASSERT_TRUE(damaged->write_text(path, std::string_view(text).substr(0, text.size() / 2)));
    EXPECT_FALSE(passes(*damaged)) << "cut " << path;
    if (path.find("/d/") != std::string::npos) data.push_back(path);
  }
  ASSERT_GE(data.size(), 2u);
  auto damaged = copy(disk_);
  ASSERT_TRUE(damaged->write_text(data[0], all.at(data[1])));
  ASSERT_TRUE(damaged->write_text(data[1], all.at(data[0])));
  EXPECT_FALSE(passes(*damaged));
}

TEST_F(Verify, NamesLeafFileAndOffset) {
  const auto all = files(disk_, "out/0");
  for (const auto& [path, text] : all) {
    if (path.find("/d/") == std::string::npos || text.size() < 20'000) continue;
    auto damaged = copy(disk_);
    std::string flipped = text;
    flipped[100] = static_cast<char>(flipped[100] ^ 1);
    ASSERT_TRUE(damaged->write_text(path, flipped));
    auto report = verify_checkpoint(*damaged, "out/0", {});
    ASSERT_TRUE(report);
    ASSERT_FALSE(report->good());
    EXPECT_THAT(report->damages[0].leaf, HasSubstr("params.params."));
    EXPECT_THAT(report->damages[0].text, HasSubstr(path.substr(path.rfind('/') + 1)));
    return;
  }
  FAIL() << "no data file to damage";
}

TEST_F(Verify, NoticesAnotherModelsValues) {
  auto other = open_model(convert::testing::kLlama, {{"scan_layers", "true"}});
  auto mutated = options();
  mutated.save_dtype = DType::kFloat32;
  MemoryStorage disk;
  ASSERT_TRUE(convert::testing::convert(disk, *source_, mutated));
  EXPECT_TRUE(passes(disk, {.source = other.get()}));
  EXPECT_FALSE(passes(disk, {.source = other.get(), .save_dtype = DType::kBfloat16}));
}

}  // namespace
}  // namespace maxport::verify
