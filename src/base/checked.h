// Checked integer arithmetic for lengths and offsets that come from outside.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>

namespace maxport {

template <std::integral T>
std::optional<T> checked_add(T a, T b) {
  T out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <std::integral T>
std::optional<T> checked_multiply(T a, T b) {
  T out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

/// Product of all extents as a non-negative int64, 1 for an empty list; nothing on overflow or a negative extent. A
/// zero anywhere gives zero, whatever the others are.
inline std::optional<int64_t> checked_product(std::span<const int64_t> extents) {
  int64_t product = 1;
  bool overflow = false, zero = false;
  for (int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) zero = true;
    if (!overflow) overflow = __builtin_mul_overflow(product, extent, &product);
  }
  if (zero) return 0;
  if (overflow) return std::nullopt;
  return product;
}

}  // namespace maxport
