#include "compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/cast.h"

namespace maxport::compare {
namespace {

constexpr size_t kBlock = 1024;

/// Numbers of a block: every type but these three fits a float32 exactly.
bool needs_double(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: case DType::kInt32: case DType::kUint32: case DType::kInt64: case DType::kUint64: return true;
    default: return false;
  }
}

struct Numbers {
  alignas(64) double values[kBlock];

  void load(DType dtype, const std::byte* from, size_t count) {
    const ByteSpan in(from, count * static_cast<size_t>(dtype_bytes(dtype)));
    if (needs_double(dtype)) {
      cast(dtype, in, DType::kFloat64, std::as_writable_bytes(std::span(values)).first(count * sizeof(double)));
      return;
    }
    alignas(64) float narrow[kBlock];
    cast(dtype, in, DType::kFloat32, std::as_writable_bytes(std::span(narrow)).first(count * sizeof(float)));
    for (size_t i = 0; i < count; ++i) values[i] = narrow[i];
  }
};

/// A block whose bits are equal: only its length counts.
void add_equal(DType dtype, const std::byte* a, size_t count, Statistics& out) {
  Numbers numbers;
  numbers.load(dtype, a, count);
  double lanes[8] = {};
  uint64_t nans = 0;
  for (size_t i = 0; i < count; ++i) {
    const double x = numbers.values[i];
    lanes[i % 8] += std::isfinite(x) ? x * x : 0;
    nans += x != x;
  }
  double squares = 0;
  for (double lane : lanes) squares += lane;
  out.dot += squares;
  out.a_squares += squares;
  out.b_squares += squares;
  out.equal_nans += nans;
}

void note_first(uint64_t position, const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes, Statistics& out) {
  if (position >= out.first) return;
  out.first = position;
  out.first_a = out.first_b = {};
  std::memcpy(out.first_a.bits.data(), a, a_bytes);
  std::memcpy(out.first_b.bits.data(), b, b_bytes);
}

void add_bits(size_t bytes, const std::byte* a, const std::byte* b, size_t count, uint64_t position, Statistics& out) {
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(a + i * bytes, b + i * bytes, bytes) == 0) continue;
    ++out.differing;
    ++out.beyond;
    note_first(position + i, a + i * bytes, bytes, b + i * bytes, bytes, out);
  }
}

void add_unequal(DType a_dtype, const std::byte* a, DType b_dtype, const std::byte* b, size_t count, uint64_t position,
                 double tolerance, Statistics& out) {
  const auto a_bytes = static_cast<size_t>(dtype_bytes(a_dtype)), b_bytes = static_cast<size_t>(dtype_bytes(b_dtype));
  const bool same = a_dtype == b_dtype;
  Numbers left, right;
  left.load(a_dtype, a, count);
  right.load(b_dtype, b, count);
  for (size_t i = 0; i < count; ++i) {
    const double x = left.values[i], y = right.values[i];
    const std::byte *at_a = a + i * a_bytes, *at_b = b + i * b_bytes;
    const bool equal = same ? std::memcmp(at_a, at_b, a_bytes) == 0 : x == y || (x != x && y != y);
    const bool finite = std::isfinite(x) && std::isfinite(y);
    if (finite) {
      out.dot += x * y;
      out.a_squares += x * x;
      out.b_squares += y * y;
    }
    if (equal) {
      out.equal_nans += x != x;
      continue;
    }
    ++out.differing;
    note_first(position + i, at_a, a_bytes, at_b, b_bytes, out);
    if (!finite) {
      ++out.non_finite;
      ++out.beyond;
      continue;
    }
    const double difference = std::abs(x - y);
    // A tolerance of zero asks for equal bits.
    if (!(difference <= tolerance) || tolerance == 0) ++out.beyond;
    out.max_difference = std::max(out.max_difference, difference);
    out.sum_difference += difference;
    if (same) out.max_ulp = std::max(out.max_ulp, ulp_distance(a_dtype, at_a, at_b));
  }
}

uint64_t load_bits(DType dtype, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(dtype_bytes(dtype)));
  const int width = dtype_info(dtype).bits;
  return width < 64 ? bits & ((uint64_t{1} << width) - 1) : bits;
}

}  // namespace

void Statistics::merge(const Statistics& other) {
  if (other.elements > 0) {
    a_dtype = other.a_dtype;
    b_dtype = other.b_dtype;
  }
  elements += other.elements;
  differing += other.differing;
  beyond += other.beyond;
  non_finite += other.non_finite;
  equal_nans += other.equal_nans;
  max_difference = std::max(max_difference, other.max_difference);
  sum_difference += other.sum_difference;
  dot += other.dot;
  a_squares += other.a_squares;
  b_squares += other.b_squares;
  max_ulp = std::max(max_ulp, other.max_ulp);
  if (other.first < first) {
    first = other.first;
    first_a = other.first_a;
    first_b = other.first_b;
  }
}

double Statistics::mean_difference() const {
  const uint64_t counted = elements - non_finite;
  return counted == 0 ? 0 : sum_difference / static_cast<double>(counted);
}

std::optional<double> Statistics::cosine() const {
  if (differing == 0) return 1;
  const double cosine = dot / (std::sqrt(a_squares) * std::sqrt(b_squares));
  if (!std::isfinite(cosine)) return std::nullopt;
  return std::clamp(cosine, -1.0, 1.0);
}

bool is_number(DType dtype) { return dtype != DType::kComplex64 && dtype != DType::kComplex128; }

uint64_t ulp_distance(DType dtype, const std::byte* a, const std::byte* b) {
  const DTypeInfo& info = dtype_info(dtype);
  uint64_t x = load_bits(dtype, a), y = load_bits(dtype, b);
  const uint64_t sign = uint64_t{1} << (info.bits - 1);
  const bool signed_integer = !info.floating && info.name.starts_with("int");
  if (signed_integer) {
    x ^= sign;
    y ^= sign;
  } else if (info.floating && dtype != DType::kFloat8E8m0fnu) {
    // Sign and magnitude: negative values count downwards from -0, which is one below +0.
    x = x & sign ? sign - 1 - (x ^ sign) : x + sign;
    y = y & sign ? sign - 1 - (y ^ sign) : y + sign;
  }
  return x > y ? x - y : y - x;
}

double number(DType dtype, const std::byte* element) {
  if (!is_number(dtype)) return std::numeric_limits<double>::quiet_NaN();
  Numbers one;
  one.load(dtype, element, 1);
  return one.values[0];
}

void compare_run(DType a_dtype, const std::byte* a, DType b_dtype, const std::byte* b, size_t count, uint64_t position,
                 double tolerance, Statistics& out) {
  const auto a_bytes = static_cast<size_t>(dtype_bytes(a_dtype)), b_bytes = static_cast<size_t>(dtype_bytes(b_dtype));
  out.elements += count;
  out.a_dtype = a_dtype;
  out.b_dtype = b_dtype;
  for (size_t done = 0; done < count; done += kBlock) {
    const size_t n = std::min(kBlock, count - done);
    const std::byte *at_a = a + done * a_bytes, *at_b = b + done * b_bytes;
    const bool same = a_dtype == b_dtype && std::memcmp(at_a, at_b, n * a_bytes) == 0;
    if (!is_number(a_dtype) || !is_number(b_dtype)) {
      if (!same) add_bits(std::min(a_bytes, b_bytes), at_a, at_b, n, position + done, out);
    } else if (same) {
      add_equal(a_dtype, at_a, n, out);
    } else {
      add_unequal(a_dtype, at_a, b_dtype, at_b, n, position + done, tolerance, out);
    }
  }
}

}  // namespace maxport::compare
