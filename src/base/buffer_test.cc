#include "base/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace maxport {
namespace {

TEST(Buffer, GrowsAndIsKept) {
  Buffer buffer;
  EXPECT_TRUE(buffer.take(0).empty());
  for (size_t count : {size_t{1}, size_t{1000}, size_t{2} << 20, (size_t{2} << 20) + 4, size_t{9} << 20}) {
    const MutableByteSpan bytes = buffer.take(count);
    ASSERT_EQ(bytes.size(), count);
    std::ranges::fill(bytes, std::byte{1});
    EXPECT_EQ(buffer.content().size(), count);
    EXPECT_EQ(buffer.take(count).data(), bytes.data()) << "no reason to allocate";
    EXPECT_EQ(buffer.take(1).data(), bytes.data());
    EXPECT_EQ(buffer.content().size(), count) << "asking for less takes nothing away";
  }
}

TEST(Buffer, BeginsAtAHugePageWhenItHoldsOne) {
  for (size_t count : {size_t{2} << 20, size_t{30} << 20}) {
    Buffer buffer;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.take(count).data()) % (size_t{2} << 20), 0u) << count;
  }
}

}  // namespace
}  // namespace maxport
