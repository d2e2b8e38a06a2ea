#include "tensor/scalar_cast.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "tensor/minifloat.h"

namespace maxport {
namespace {

constexpr size_t kBatch = 128;

template <class T>
T load(const std::byte* in, size_t index) {
  T value;
  std::memcpy(&value, in + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(T value, std::byte* out, size_t index) {
  std::memcpy(out + index * sizeof(T), &value, sizeof(T));
}

template <class Wide>
void widen(const std::byte* in, size_t count, Wide* out, auto&& convert) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<Wide>(convert(in, i));
}

const MiniFloat& format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat4E2m1fn: return kE2m1fn;
    case DType::kFloat6E2m3fn: return kE2m3fn;
    case DType::kFloat6E3m2fn: return kE3m2fn;
    case DType::kFloat8E3m4: return kE3m4;
    case DType::kFloat8E4m3fn: return kE4m3fn;
    case DType::kFloat8E4m3fnuz: return kE4m3fnuz;
    case DType::kFloat8E4m3b11fnuz: return kE4m3b11fnuz;
    case DType::kFloat8E5m2: return kE5m2;
    case DType::kFloat8E5m2fnuz: return kE5m2fnuz;
    case DType::kFloat16: return kHalf;
    case DType::kBfloat16: return kBrain;
    default: check_failed(__FILE__, __LINE__, "a small float type");
  }
}

/// Widening of 16-bit NaN moves the payload; small ones are canonical already.
float decode_16(DType dtype, uint16_t code) {
  if (dtype == DType::kBfloat16) return std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
  if (!kHalf.is_nan(code)) return decode_minifloat(kHalf, code);
  const uint32_t sign = (code & 0x8000u) << 16;
  return std::bit_cast<float>(sign | 0x7F800000u | ((code & 0x3FFu) << 13));
}

/// Sign-extends the low kBits.
template <int kBits>
int8_t load_low_bits(const std::byte* in, size_t index) {
  return static_cast<int8_t>(static_cast<int8_t>(load<uint8_t>(in, index) << (8 - kBits)) >> (8 - kBits));
}

void decode_floats(DType dtype, const std::byte* in, size_t count, double* out) {
  switch (dtype) {
    case DType::kFloat64: return widen(in, count, out, load<double>);
    case DType::kFloat32: return widen(in, count, out, load<float>);
    case DType::kFloat16:
    case DType::kBfloat16:
      return widen(in, count, out, [=](auto* at, size_t i) { return decode_16(dtype, load<uint16_t>(at, i)); });
    case DType::kFloat8E8m0fnu:
      return widen(in, count, out, [](auto* at, size_t i) { return decode_e8m0(load<uint8_t>(at, i)); });
    default: {
      const MiniFloat& format = format_of(dtype);
      return widen(in, count, out, [&](auto* at, size_t i) { return decode_minifloat(format, load<uint8_t>(at, i)); });
    }
  }
}

void decode_integers(DType dtype, const std::byte* in, size_t count, int64_t* out) {
  switch (dtype) {
    case DType::kBool: return widen(in, count, out, [](auto* at, size_t i) { return load<uint8_t>(at, i) != 0; });
    case DType::kInt2: return widen(in, count, out, load_low_bits<2>);
    case DType::kInt4: return widen(in, count, out, load_low_bits<4>);
    case DType::kUint4: return widen(in, count, out, [](auto* at, size_t i) { return load<uint8_t>(at, i) & 15; });
    case DType::kInt8: return widen(in, count, out, load<int8_t>);
    case DType::kInt16: return widen(in, count, out, load<int16_t>);
    case DType::kInt32: return widen(in, count, out, load<int32_t>);
    case DType::kInt64: return widen(in, count, out, load<int64_t>);
    case DType::kUint8: return widen(in, count, out, load<uint8_t>);
    case DType::kUint16: return widen(in, count, out, load<uint16_t>);
    case DType::kUint32: return widen(in, count, out, load<uint32_t>);
    default: check_failed(__FILE__, __LINE__, "an integer type that int64 holds");
  }
}

/// float32 or float64, NaN made canonical: the processor's own conversions keep part of the payload.
template <std::floating_point T, class Wide>
T to_float(Wide value) {
  if constexpr (std::same_as<Wide, double>) {
    if (std::isnan(value)) return std::copysign(std::numeric_limits<T>::quiet_NaN(), static_cast<T>(value));
  }
  return static_cast<T>(value);
}

/// Truncates a float into [low, high]; an integer drops its high bits.
template <class Wide>
int64_t to_integer(Wide value, int64_t low, int64_t high) {
  if constexpr (std::same_as<Wide, double>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(low)) return low;
    if (value >= static_cast<double>(high)) return high;
  }
  return static_cast<int64_t>(value);
}

template <class Wide, std::integral T>
void encode_integer(const Wide* in, size_t count, std::byte* out) {
  using Limits = std::numeric_limits<T>;
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::same_as<T, uint64_t> && std::same_as<Wide, double>) {
      const double value = in[i];
      store<T>(!(value > 0) ? 0 : value >= 0x1p64 ? Limits::max() : static_cast<uint64_t>(value), out, i);
    } else if constexpr (std::same_as<T, uint64_t>) {
      store<T>(static_cast<uint64_t>(in[i]), out, i);
    } else {
      store<T>(static_cast<T>(to_integer(in[i], Limits::min(), Limits::max())), out, i);
    }
  }
}

template <class Wide>
void encode_low_bits(const Wide* in, size_t count, std::byte* out, int64_t low, int64_t high, int mask) {
  for (size_t i = 0; i < count; ++i)
    store<uint8_t>(static_cast<uint8_t>(to_integer(in[i], low, high) & mask), out, i);
}

template <class Wide>
void encode_small_float(DType dtype, const Wide* in, size_t count, std::byte* out) {
  const MiniFloat& format = format_of(dtype);
  for (size_t i = 0; i < count; ++i) {
    if (dtype == DType::kFloat16) {  // NumPy's own type: one rounding
      store<uint16_t>(static_cast<uint16_t>(encode_minifloat(format, static_cast<double>(in[i]))), out, i);
      continue;
    }
    const uint32_t code = encode_minifloat(format, static_cast<double>(to_float<float>(in[i])));
    if (dtype == DType::kBfloat16) {
      store<uint16_t>(static_cast<uint16_t>(code), out, i);
    } else {
      store<uint8_t>(static_cast<uint8_t>(code), out, i);
    }
  }
}

template <class Wide>
void encode(DType dtype, const Wide* in, size_t count, std::byte* out) {
  switch (dtype) {
    case DType::kBool:
      for (size_t i = 0; i < count; ++i) store<uint8_t>(in[i] != 0 ? 1 : 0, out, i);
      return;
    case DType::kInt2: return encode_low_bits(in, count, out, -2, 1, 3);
    case DType::kInt4: return encode_low_bits(in, count, out, -8, 7, 15);
    case DType::kUint4: return encode_low_bits(in, count, out, 0, 15, 15);
    case DType::kInt8: return encode_integer<Wide, int8_t>(in, count, out);
    case DType::kInt16: return encode_integer<Wide, int16_t>(in, count, out);
    case DType::kInt32: return encode_integer<Wide, int32_t>(in, count, out);
    case DType::kInt64: return encode_integer<Wide, int64_t>(in, count, out);
    case DType::kUint8: return encode_integer<Wide, uint8_t>(in, count, out);
    case DType::kUint16: return encode_integer<Wide, uint16_t>(in, count, out);
    case DType::kUint32: return encode_integer<Wide, uint32_t>(in, count, out);
    case DType::kUint64: return encode_integer<Wide, uint64_t>(in, count, out);
    case DType::kFloat32:
      for (size_t i = 0; i < count; ++i) store<float>(to_float<float>(in[i]), out, i);
      return;
    case DType::kFloat64:
      for (size_t i = 0; i < count; ++i) store<double>(to_float<double>(in[i]), out, i);
      return;
    case DType::kFloat8E8m0fnu:
      for (size_t i = 0; i < count; ++i)
        store<uint8_t>(static_cast<uint8_t>(encode_e8m0(to_float<float>(in[i]))), out, i);
      return;
    default: return encode_small_float(dtype, in, count, out);
  }
}

template <class Wide>
void cast_through(DType from, const std::byte* in, DType to, std::byte* out, size_t count, auto&& decode) {
  Wide wide[kBatch];
  for (size_t done = 0; done < count; done += kBatch) {
    const size_t batch = std::min(kBatch, count - done);
    decode(from, in + done * static_cast<size_t>(dtype_bytes(from)), batch, wide);
    encode(to, wide, batch, out + done * static_cast<size_t>(dtype_bytes(to)));
  }
}

}  // namespace

void scalar_cast(DType from, const std::byte* in, DType to, std::byte* out, size_t count) {
  if (from == to) {
    if (count != 0) std::memcpy(out, in, count * static_cast<size_t>(dtype_bytes(from)));
  } else if (to == DType::kFloat32 && (from == DType::kFloat16 || from == DType::kBfloat16)) {
    // Not through float64, which would quiet a NaN.
    for (size_t i = 0; i < count; ++i) store<float>(decode_16(from, load<uint16_t>(in, i)), out, i);
  } else if (is_floating(from)) {
    cast_through<double>(from, in, to, out, count, decode_floats);
  } else if (from == DType::kUint64) {
    const auto decode = [](DType, const std::byte* at, size_t batch, uint64_t* wide) {
      std::memcpy(wide, at, batch * sizeof(uint64_t));
    };
    cast_through<uint64_t>(from, in, to, out, count, decode);
  } else {
    cast_through<int64_t>(from, in, to, out, count, decode_integers);
  }
}

}  // namespace maxport
