#include "storage/open_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace maxport {
namespace {

using testing::HasSubstr;

/// Limits this process until the end of the test.
class Limits {
 public:
  Limits() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~Limits() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  rlim_t hard() const { return before_.rlim_max; }
  void set_soft(rlim_t soft) const {
    const rlimit limit{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

 private:
  rlimit before_;
};

TEST(ReserveOpenFiles, RaisesTheSoftLimit) {
  const Limits limits;
  limits.set_soft(16);
  ASSERT_TRUE(reserve_open_files(40));
  rlimit now;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_GE(now.rlim_cur, 40u);
}

TEST(ReserveOpenFiles, SaysWhatIsMissingBeyondTheHardLimit) {
  const Limits limits;
  // Linux allows no unlimited number of files, so this is beyond every limit.
  const Result<> status = reserve_open_files(uint64_t{1} << 62);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(status.error().message(), HasSubstr(std::to_string(limits.hard())));
  EXPECT_THAT(status.error().message(), HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace maxport
