#include "tensor/cast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "base/digest.h"
#include "tensor/convert_kernels.h"
#include "tensor/scalar_cast.h"
#include "tensor/simd_targets_for_test.h"

namespace maxport {
namespace {

// The patterns of tests/data/tensor/make_cast_digests.py.
constexpr uint64_t kLow32[] = {0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000,
                               0x3001, 0x5000, 0x7FFF, 0x8000, 0x8001, 0xF000, 0xFFFF};
constexpr uint64_t kBit28 = 1ull << 28, kBit41 = 1ull << 41, kBit44 = 1ull << 44, kBit47 = 1ull << 47;
constexpr uint64_t kLow64[] = {0,          1,          kBit28 - 1, kBit28,          kBit28 + 1,
                               3 * kBit28, kBit41 - 1, kBit41,     kBit41 + 1,      3 * kBit41,
                               kBit44 - 1, kBit44,     kBit44 + 1, kBit47 - 1,      kBit47,
                               kBit47 + 1, kBit47 + kBit28,        2 * kBit47 - 1};

void append_le(Bytes& out, uint64_t code, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(code >> (8 * i)));
}

Bytes patterns(DType dtype) {
  const int64_t size = dtype_bytes(dtype);
  const int bits = dtype == DType::kBool ? 1 : dtype_info(dtype).bits;
  Bytes out;
  if (bits <= 16) {
    for (uint64_t code = 0; code < (1ull << bits); ++code) append_le(out, code, size);
    return out;
  }
  const std::span<const uint64_t> low = bits == 32 ? std::span<const uint64_t>(kLow32) : kLow64;
  for (uint64_t high = 0; high < 65536; ++high)
    for (uint64_t rest : low) append_le(out, (high << (bits - 16)) + rest, size);
  return out;
}

Bytes converted(DType from, ByteSpan in, DType to) {
  Bytes out(in.size() / static_cast<size_t>(dtype_bytes(from)) * static_cast<size_t>(dtype_bytes(to)));
  cast(from, in, to, out);
  return out;
}

std::vector<DType> real_dtypes() {
  std::vector<DType> out;
  for (const DTypeInfo& row : all_dtypes())
    if (can_cast(row.dtype, DType::kFloat32)) out.push_back(row.dtype);
  return out;
}

TEST(Cast, MatchesNumpyAndMlDtypesForEveryPairOfTypes) {
  std::ifstream file(MAXPORT_TEST_DATA "/tensor/cast_digests.txt");
  std::string from_name, to_name, digest;
  size_t pairs = 0;
  std::map<std::string, Bytes> inputs;
  for (; file >> from_name >> to_name >> digest; ++pairs) {
    const DType from = dtype_from_name(from_name).value(), to = dtype_from_name(to_name).value();
    if (!inputs.contains(from_name)) inputs[from_name] = patterns(from);
    const auto check = [&] {
      EXPECT_EQ(sha256_hex(converted(from, inputs[from_name], to)), digest) << from_name << " to " << to_name;
    };
    if (vector_kernel(ElementOp::convert(from, to))) {
      for_each_simd_target(check);
    } else {
      check();
    }
  }
  EXPECT_EQ(pairs, real_dtypes().size() * real_dtypes().size());
}

/// Converts the first 0 to all elements of `in` at various alignments and compares with the scalar conversion.
void check_lengths(DType from, ByteSpan in, DType to) {
  const auto in_size = static_cast<size_t>(dtype_bytes(from)), out_size = static_cast<size_t>(dtype_bytes(to));
  const size_t most = in.size() / in_size;
  Bytes expected(most * out_size);
  scalar_cast(from, in.data(), to, expected.data(), most);
  for (size_t count = 0; count <= most; ++count) {
    const size_t shift = count % 5;
    Bytes shifted(in.size() + shift), out(expected.size() + shift, std::byte{0xA5});
    std::ranges::copy(in, shifted.begin() + static_cast<std::ptrdiff_t>(shift));
    cast(from, ByteSpan(shifted).subspan(shift, count * in_size), to, MutableByteSpan(out).subspan(shift));
    const ByteSpan written = ByteSpan(out).subspan(shift, count * out_size);
    const ByteSpan behind = ByteSpan(out).subspan(shift + count * out_size);
    ASSERT_TRUE(std::ranges::equal(written, ByteSpan(expected).first(count * out_size)))
        << dtype_name(from) << " to " << dtype_name(to) << ", " << count;
    ASSERT_TRUE(std::ranges::all_of(behind, [](std::byte byte) { return byte == std::byte{0xA5}; }));
  }
}

TEST(Cast, GivesTheSameAtEveryLengthAndAlignment) {
  for (DType from : real_dtypes()) {
    // From the middle of the patterns, where ordinary numbers are.
    const auto size = static_cast<size_t>(dtype_bytes(from));
    const Bytes all = patterns(from);
    const size_t most = std::min<size_t>(67, all.size() / size);
    const ByteSpan in = ByteSpan(all).subspan((all.size() / size - most) / 2 * size, most * size);
    for_each_simd_target([&] {
      for (DType to : real_dtypes()) check_lengths(from, in, to);
    });
  }
}

TEST(Cast, IgnoresTheUnusedBitsOfElementsSmallerThanAByte) {
  for (DType from : {DType::kInt2, DType::kInt4, DType::kUint4, DType::kFloat4E2m1fn, DType::kFloat6E2m3fn,
                     DType::kFloat6E3m2fn}) {
    const int bits = dtype_info(from).bits;
    for (int code = 0; code < 1 << bits; ++code) {
      const Bytes clean = {static_cast<std::byte>(code)}, dirty = {static_cast<std::byte>(code | (0xFF << bits))};
      EXPECT_EQ(converted(from, clean, DType::kFloat32), converted(from, dirty, DType::kFloat32)) << dtype_name(from);
    }
  }
}

TEST(Cast, RefusesOnlyComplexTypesMixedWithOthers) {
  EXPECT_TRUE(can_cast(DType::kComplex64, DType::kComplex64));
  EXPECT_FALSE(can_cast(DType::kComplex64, DType::kFloat32));
  EXPECT_FALSE(can_cast(DType::kFloat32, DType::kComplex128));
  EXPECT_TRUE(can_cast(DType::kUint64, DType::kFloat4E2m1fn));
  const Bytes in(16, std::byte{0x5A});
  EXPECT_EQ(converted(DType::kComplex64, in, DType::kComplex64), in);
}

}  // namespace
}  // namespace maxport
