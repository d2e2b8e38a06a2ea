#include "zarr/bitshuffle.h"

#include <gtest/gtest.h>

#include "zarr/testing.h"

namespace maxport::zarr {
namespace {

bool bit(ByteSpan bytes, size_t i) { return (static_cast<unsigned>(bytes[i / 8]) >> (i % 8) & 1u) != 0; }

class Bitshuffle : public testing::TestWithParam<size_t> {};

TEST_P(Bitshuffle, PutsEachBitIntoItsPlane) {
  const size_t size = GetParam();
  for (size_t elements : {8, 16, 136, 256, 264, 512, 1000, 4096}) {
    const Bytes in = random_bytes(elements * size);
    Bytes out(in.size());
    bitshuffle(size, in, out);
    for (size_t i = 0; i < elements; ++i)
      for (size_t b = 0; b < 8 * size; ++b)
        ASSERT_EQ(bit(in, i * 8 * size + b), bit(out, b * elements + i)) << elements << " elements, " << i << " bit " << b;
  }
}

TEST_P(Bitshuffle, IsUndone) {
  const size_t size = GetParam();
  for (size_t elements = 8; elements <= 1600; elements += 8) {
    const Bytes in = random_bytes(elements * size);
    Bytes planes(in.size()), back(in.size());
    bitshuffle(size, in, planes);
    bitunshuffle(size, planes, back);
    ASSERT_EQ(in, back) << elements << " elements";
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Bitshuffle, testing::Values(2, 4));

}  // namespace
}  // namespace maxport::zarr
