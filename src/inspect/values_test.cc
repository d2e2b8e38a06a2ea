#include "inspect/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "storage/memory_storage.h"

namespace maxport::inspect {
namespace {

/// A safetensors file of one float32 tensor of one axis.
std::string file_of(const std::vector<float>& values) {
  const std::string header = fmt::format(R"({{"w":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{}]}}}})", values.size(), values.size() * 4);
  std::string out(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(out.data(), &size, 8);
  out += header;
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  return out;
}

Values values_of(const std::vector<float>& numbers, const ValueOptions& options = {}) {
  MemoryStorage disk;
  EXPECT_TRUE(disk.write_text("m.safetensors", file_of(numbers)));
  auto found = inspect(disk, "m.safetensors");
  EXPECT_TRUE(found) << found.error().message();
  auto values = read_values(disk, "m.safetensors", *found, options);
  EXPECT_TRUE(values) << values.error().message();
  return values && (*values)[0] ? *(*values)[0] : Values{};
}

TEST(Values, HaveTheMomentsAndExtremesOfTheElements) {
  const Values v = values_of({1, 2, 3, 4});
  EXPECT_EQ(v.read, 4u);
  EXPECT_EQ(v.least, 1);
  EXPECT_EQ(v.most, 4);
  EXPECT_EQ(v.mean, 2.5);
  EXPECT_DOUBLE_EQ(v.deviation, std::sqrt(1.25));
  ASSERT_EQ(v.bins.size(), kBins);
  EXPECT_EQ(v.bins.front(), 1u);
  EXPECT_EQ(v.bins.back(), 1u);
  EXPECT_EQ(std::accumulate(v.bins.begin(), v.bins.end(), uint64_t{0}), 4u);
}

TEST(Values, CountWhatIsNotFiniteApart) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Values v = values_of({0, -0.0f, nan, infinity, -infinity, 5});
  EXPECT_EQ(v.zeros, 2u);
  EXPECT_EQ(v.nans, 1u);
  EXPECT_EQ(v.infinities, 2u);
  EXPECT_EQ(v.least, 0);
  EXPECT_EQ(v.most, 5);
  EXPECT_EQ(std::accumulate(v.bins.begin(), v.bins.end(), uint64_t{0}), 3u);
}

TEST(Values, OfOneNumberFillOneBin) {
  const Values v = values_of(std::vector<float>(100, 7.5f));
  EXPECT_EQ(v.bins[0], 100u);
  EXPECT_EQ(v.deviation, 0);
}

TEST(Values, OfNothingAreNone) { EXPECT_TRUE(values_of({}).bins.empty()); }

TEST(Values, OfASampleEndWithAWindow) {
  const std::vector<float> many(8'000'000, 1.0f);
  EXPECT_EQ(values_of(many).read, many.size());
  const Values v = values_of(many, {.sample = 10, .cancelled = {}});
  EXPECT_GE(v.read, 10u);
  EXPECT_LT(v.read, many.size() / 2);
}

TEST(Values, FallIntoBinsOfEqualWidth) {
  std::vector<float> uniform;
  for (int i = 0; i < 48'000; ++i) uniform.push_back(1 + static_cast<float>(i) / 48'000);
  for (const uint64_t n : values_of(uniform).bins) EXPECT_NEAR(static_cast<double>(n), 1000, 400);  // edges move by up to 2^-8
}

}  // namespace
}  // namespace maxport::inspect
