#include "zarr/fill_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "tensor/cast.h"

namespace maxport::zarr {
namespace {

bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }
bool is_unsigned(DType dtype) {
  return dtype == DType::kUint4 || (dtype >= DType::kUint8 && dtype <= DType::kUint64);
}

ByteSpan bytes_of(const double& value) { return std::as_bytes(std::span(&value, 1)); }

Bytes element_of(DType dtype, double value) {
  Bytes out(static_cast<size_t>(dtype_bytes(dtype)));
  if (value != 0 || std::signbit(value)) cast(DType::kFloat64, bytes_of(value), dtype, out);
  return out;
}

double value_of(DType dtype, ByteSpan element) {
  double value = 0;
  cast(dtype, element, DType::kFloat64, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

/// "0x7fc0": the bits of the element.
std::optional<Bytes> parse_bits(DType dtype, std::string_view text) {
  uint64_t bits = 0;
  const auto [end, problem] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  const auto size = static_cast<size_t>(dtype_bytes(dtype));
  if (problem != std::errc() || end != text.data() + text.size() || (size < 8 && bits >> (8 * size) != 0))
    return std::nullopt;
  std::byte stored[8];
  store_le(bits, stored);
  return Bytes(stored, stored + size);
}

Result<Bytes> parse_float(Version version, DType dtype, const Json& value, std::string_view what) {
  if (value.is_number()) return element_of(dtype, value.get<double>());
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (text == "NaN") return element_of(dtype, std::numeric_limits<double>::quiet_NaN());
    if (text == "Infinity") return element_of(dtype, std::numeric_limits<double>::infinity());
    if (text == "-Infinity") return element_of(dtype, -std::numeric_limits<double>::infinity());
    if (version == Version::kV3 && text.starts_with("0x"))
      if (auto bits = parse_bits(dtype, text)) return *std::move(bits);
  }
  return fail(ErrorKind::kCorruptData, "{}: {} is not a value of {}", what, printable(value.dump()),
              dtype_name(dtype));
}

Result<Bytes> parse_integer(DType dtype, const Json& value, std::string_view what) {
  const int bits = dtype_info(dtype).bits;
  const bool is_signed = !is_unsigned(dtype);
  uint64_t stored = 0;
  bool fits = false;
  const bool integral = value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>() &&
                        std::abs(value.get<double>()) <= 0x1p53;
  if (value.is_number_unsigned()) {
    stored = value.get<uint64_t>();
    fits = stored <= (~uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0)));
  } else if (value.is_number_integer() || integral) {
    const int64_t number = integral ? static_cast<int64_t>(value.get<double>()) : value.get<int64_t>();
    stored = static_cast<uint64_t>(number);
    const int64_t max = static_cast<int64_t>(~uint64_t{0} >> (64 - bits + 1));
    fits = is_signed ? number >= -max - 1 && number <= max : number >= 0 && (bits == 64 || number >> bits == 0);
  }
  if (!fits)
    return fail(ErrorKind::kCorruptData, "{}: {} is not a value of {}", what, printable(value.dump()),
                dtype_name(dtype));
  // Types of less than a byte keep the unused high bits zero.
  if (bits < 8) stored &= (uint64_t{1} << bits) - 1;
  std::byte bytes[8];
  store_le(stored, bytes);
  return Bytes(bytes, bytes + dtype_bytes(dtype));
}

Result<Bytes> parse_complex(Version version, DType dtype, const Json& value, std::string_view what) {
  if (!value.is_array() || value.size() != 2)
    return fail(ErrorKind::kCorruptData, "{}: {} is not a pair of numbers", what, printable(value.dump()));
  const DType part = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  MAXPORT_ASSIGN_OR_RETURN(Bytes out, parse_float(version, part, value[0], what));
  MAXPORT_ASSIGN_OR_RETURN(const Bytes imaginary, parse_float(version, part, value[1], what));
  out.insert(out.end(), imaginary.begin(), imaginary.end());
  return out;
}

Json float_json(Version version, DType dtype, ByteSpan element) {
  if (std::ranges::all_of(element, [](std::byte byte) { return byte == std::byte{0}; })) return 0.0;
  const double value = value_of(dtype, element);
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (!std::isnan(value)) return value;
  const Bytes usual = element_of(dtype, std::numeric_limits<double>::quiet_NaN());
  if (version == Version::kV2 || std::ranges::equal(usual, element)) return "NaN";
  std::byte bits[8] = {};
  std::ranges::copy(element, bits);
  return fmt::format("0x{:0{}x}", load_le<uint64_t>(bits), 2 * element.size());
}

Json integer_json(DType dtype, ByteSpan element) {
  std::byte bytes[8] = {};
  std::ranges::copy(element, bytes);
  const auto bits = load_le<uint64_t>(bytes);
  if (is_unsigned(dtype)) return bits;
  const int unused = 64 - dtype_info(dtype).bits;
  return static_cast<int64_t>(bits << unused) >> unused;
}

}  // namespace

Result<Bytes> parse_fill_value(Version version, DType dtype, const Json& value, std::string_view what) {
  if (version == Version::kV2 && value.is_null()) return Bytes();
  if (is_complex(dtype)) return parse_complex(version, dtype, value, what);
  if (is_floating(dtype)) return parse_float(version, dtype, value, what);
  if (dtype != DType::kBool) return parse_integer(dtype, value, what);
  if (!value.is_boolean())
    return fail(ErrorKind::kCorruptData, "{}: {} is not a value of bool", what, printable(value.dump()));
  return Bytes{std::byte{value.get<bool>()}};
}

Json fill_value_json(Version version, DType dtype, ByteSpan element) {
  if (element.empty()) return nullptr;
  if (dtype == DType::kBool) return element[0] != std::byte{0};
  if (is_complex(dtype)) {
    const DType part = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
    const size_t half = element.size() / 2;
    return Json::array({float_json(version, part, element.first(half)), float_json(version, part, element.last(half))});
  }
  return is_floating(dtype) ? float_json(version, dtype, element) : integer_json(dtype, element);
}

}  // namespace maxport::zarr
