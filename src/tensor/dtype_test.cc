#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace maxport {
namespace {

TEST(DTypes, EveryNameLeadsBackToItsRow) {
  for (const DTypeInfo& row : all_dtypes()) {
    EXPECT_EQ(dtype_info(row.dtype).name, row.name);
    EXPECT_EQ(dtype_from_name(row.name), row.dtype);
    EXPECT_EQ(dtype_from_zarr2(row.zarr2), row.dtype);
    if (!row.safetensors.empty()) {
      EXPECT_EQ(dtype_from_safetensors(row.safetensors), row.dtype);
    }
    EXPECT_EQ(row.bytes, (row.bits + 7) / 8);
  }
}

TEST(DTypes, UnknownAndLowerCaseNamesAreUnknown) {
  EXPECT_FALSE(dtype_from_safetensors("bf16"));
  EXPECT_FALSE(dtype_from_safetensors(""));
  EXPECT_FALSE(dtype_from_name("float12"));
}

}  // namespace
}  // namespace maxport
