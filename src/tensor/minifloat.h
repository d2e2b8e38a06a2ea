// The small float types, described by their numbers of bits, and their exact conversion from and to float32, one
// element at a time. Everything here is the reference; the vector kernels must agree with it bit for bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace maxport {

/// How a type spends its topmost codes.
enum class Specials : uint8_t {
  kIeee,          ///< top exponent: infinity and NaN
  kNanOnly,       ///< all ones is NaN, no infinity (*fn of 8 bits)
  kUnsignedZero,  ///< the code of -0 is NaN, no infinity (*fnuz)
  kNone,          ///< every code is a finite number (4 and 6 bits)
};

struct MiniFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr uint32_t sign_bit() const { return 1u << (bits() - 1); }
  constexpr uint32_t magnitude_mask() const { return sign_bit() - 1; }
  constexpr uint32_t top_exponent() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
  /// Code of the largest finite magnitude.
  constexpr uint32_t largest() const {
    if (specials == Specials::kIeee) return top_exponent() - 1;
    return specials == Specials::kNanOnly ? magnitude_mask() - 1 : magnitude_mask();
  }
  constexpr uint32_t canonical_nan(bool negative) const {
    const uint32_t sign = negative ? sign_bit() : 0;
    switch (specials) {
      case Specials::kIeee: return sign | top_exponent() | (1u << (mantissa_bits - 1));
      case Specials::kNanOnly: return sign | magnitude_mask();
      case Specials::kUnsignedZero: return sign_bit();
      case Specials::kNone: break;
    }
    return negative ? 0 : sign_bit();  // as ml_dtypes: there is no NaN, it becomes zero of the other sign
  }
  constexpr bool is_nan(uint32_t code) const {
    const uint32_t magnitude = code & magnitude_mask();
    switch (specials) {
      case Specials::kIeee: return magnitude > top_exponent();
      case Specials::kNanOnly: return magnitude == magnitude_mask();
      case Specials::kUnsignedZero: return code == sign_bit();
      case Specials::kNone: break;
    }
    return false;
  }
};

inline constexpr MiniFloat kE2m1fn{2, 1, 1, Specials::kNone};
inline constexpr MiniFloat kE2m3fn{2, 3, 1, Specials::kNone};
inline constexpr MiniFloat kE3m2fn{3, 2, 3, Specials::kNone};
inline constexpr MiniFloat kE3m4{3, 4, 3, Specials::kIeee};
inline constexpr MiniFloat kE4m3fn{4, 3, 7, Specials::kNanOnly};
inline constexpr MiniFloat kE4m3fnuz{4, 3, 8, Specials::kUnsignedZero};
inline constexpr MiniFloat kE4m3b11fnuz{4, 3, 11, Specials::kUnsignedZero};
inline constexpr MiniFloat kE5m2{5, 2, 15, Specials::kIeee};
inline constexpr MiniFloat kE5m2fnuz{5, 2, 16, Specials::kUnsignedZero};
inline constexpr MiniFloat kHalf{5, 10, 15, Specials::kIeee};
inline constexpr MiniFloat kBrain{8, 7, 127, Specials::kIeee};

inline constexpr uint32_t kNanF32 = 0x7FC00000;

/// Code of a finite magnitude, given as the bits of a non-negative float64; may exceed largest().
inline uint64_t round_magnitude(const MiniFloat& f, uint64_t bits) {
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const uint64_t significand = (bits & ((uint64_t{1} << 52) - 1)) | (exponent == -1023 ? 0 : uint64_t{1} << 52);
  const int lowest = 1 - f.bias;  // below it, subnormals share one quantum
  const int shift = 52 - f.mantissa_bits + (exponent < lowest ? lowest - exponent : 0);
  if (shift > 54) return 0;
  const uint64_t odd = (significand >> shift) & 1;
  const uint64_t rounded = (significand + (uint64_t{1} << (shift - 1)) - 1 + odd) >> shift;
  // The hidden bit, and a carry out of the mantissa, add one to the exponent as they must.
  return (exponent < lowest ? 0 : static_cast<uint64_t>(exponent - lowest) << f.mantissa_bits) + rounded;
}

/// Rounds to the type, once; exact values and NaN of float32 may be passed as they are.
inline uint32_t encode_minifloat(const MiniFloat& f, double value) {
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return f.canonical_nan(negative);
  const uint32_t sign = negative ? f.sign_bit() : 0;
  const uint64_t code = round_magnitude(f, std::bit_cast<uint64_t>(std::fabs(value)));
  if (code > f.largest()) {
    if (f.specials == Specials::kIeee) return sign | f.top_exponent();
    if (f.specials == Specials::kNone) return sign | f.largest();
    return f.canonical_nan(negative);
  }
  if (code == 0 && f.specials == Specials::kUnsignedZero) return 0;
  return sign | static_cast<uint32_t>(code);
}

/// Exact value of a code as float32; NaN is canonical. Unused high bits are ignored.
inline float decode_minifloat(const MiniFloat& f, uint32_t code) {
  code &= f.sign_bit() | f.magnitude_mask();
  const bool negative = (code & f.sign_bit()) != 0;
  if (f.is_nan(code)) return std::bit_cast<float>(kNanF32 | (negative ? 0x80000000u : 0));
  const uint32_t magnitude = code & f.magnitude_mask();
  if (f.specials == Specials::kIeee && magnitude == f.top_exponent()) return negative ? -INFINITY : INFINITY;
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  const uint32_t significand = exponent == 0 ? mantissa : mantissa | (1u << f.mantissa_bits);
  const int scale = (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits;
  const float value = std::ldexp(static_cast<float>(significand), scale);
  return negative ? -value : value;
}

/// 2^(code - 127), NaN for 255.
inline float decode_e8m0(uint32_t code) {
  return code == 255 ? std::bit_cast<float>(kNanF32) : std::ldexp(1.0f, static_cast<int>(code) - 127);
}

inline uint32_t encode_e8m0(float value) {
  if (!(value > 0) || std::isinf(value)) return 255;
  // ml_dtypes rounds float32's subnormals up, all others half up, which the top mantissa bit decides.
  if (value < 0x1p-126f) return value <= 0x1p-127f ? 0 : 1;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return (bits >> 23) + ((bits >> 22) & 1);
}

}  // namespace maxport
