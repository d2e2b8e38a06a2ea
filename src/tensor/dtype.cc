#include "tensor/dtype.h"

#include <array>

#include "base/error.h"

namespace maxport {
namespace {

// clang-format off
constexpr std::array kTable = {
  DTypeInfo{DType::kBool,              "bool",                "|b1",                 "BOOL",         8, 1, false},
  DTypeInfo{DType::kInt2,              "int2",                "int2",                "",             2, 1, false},
  DTypeInfo{DType::kInt4,              "int4",                "int4",                "",             4, 1, false},
  DTypeInfo{DType::kUint4,             "uint4",               "uint4",               "",             4, 1, false},
  DTypeInfo{DType::kInt8,              "int8",                "|i1",                 "I8",           8, 1, false},
  DTypeInfo{DType::kInt16,             "int16",               "<i2",                 "I16",         16, 2, false},
  DTypeInfo{DType::kInt32,             "int32",               "<i4",                 "I32",         32, 4, false},
  DTypeInfo{DType::kInt64,             "int64",               "<i8",                 "I64",         64, 8, false},
  DTypeInfo{DType::kUint8,             "uint8",               "|u1",                 "U8",           8, 1, false},
  DTypeInfo{DType::kUint16,            "uint16",              "<u2",                 "U16",         16, 2, false},
  DTypeInfo{DType::kUint32,            "uint32",              "<u4",                 "U32",         32, 4, false},
  DTypeInfo{DType::kUint64,            "uint64",              "<u8",                 "U64",         64, 8, false},
  DTypeInfo{DType::kFloat4E2m1fn,      "float4_e2m1fn",       "float4_e2m1fn",       "F4",           4, 1, true},
  DTypeInfo{DType::kFloat6E2m3fn,      "float6_e2m3fn",       "float6_e2m3fn",       "F6_E2M3",      6, 1, true},
  DTypeInfo{DType::kFloat6E3m2fn,      "float6_e3m2fn",       "float6_e3m2fn",       "F6_E3M2",      6, 1, true},
  DTypeInfo{DType::kFloat8E3m4,        "float8_e3m4",         "float8_e3m4",         "",             8, 1, true},
  DTypeInfo{DType::kFloat8E4m3fn,      "float8_e4m3fn",       "float8_e4m3fn",       "F8_E4M3",      8, 1, true},
  DTypeInfo{DType::kFloat8E4m3fnuz,    "float8_e4m3fnuz",     "float8_e4m3fnuz",     "F8_E4M3FNUZ",  8, 1, true},
  DTypeInfo{DType::kFloat8E4m3b11fnuz, "float8_e4m3b11fnuz",  "float8_e4m3b11fnuz",  "",             8, 1, true},
  DTypeInfo{DType::kFloat8E5m2,        "float8_e5m2",         "float8_e5m2",         "F8_E5M2",      8, 1, true},
  DTypeInfo{DType::kFloat8E5m2fnuz,    "float8_e5m2fnuz",     "float8_e5m2fnuz",     "F8_E5M2FNUZ",  8, 1, true},
  DTypeInfo{DType::kFloat8E8m0fnu,     "float8_e8m0fnu",      "float8_e8m0fnu",      "F8_E8M0",      8, 1, true},
  DTypeInfo{DType::kFloat16,           "float16",             "<f2",                 "F16",         16, 2, true},
  DTypeInfo{DType::kBfloat16,          "bfloat16",            "bfloat16",            "BF16",        16, 2, true},
  DTypeInfo{DType::kFloat32,           "float32",             "<f4",                 "F32",         32, 4, true},
  DTypeInfo{DType::kFloat64,           "float64",             "<f8",                 "F64",         64, 8, true},
  DTypeInfo{DType::kComplex64,         "complex64",           "<c8",                 "C64",         64, 8, false},
  DTypeInfo{DType::kComplex128,        "complex128",          "<c16",                "",           128, 16, false},
};
// clang-format on

template <class Field>
std::optional<DType> find(std::string_view name, Field field) {
  if (name.empty()) return std::nullopt;
  for (const DTypeInfo& row : kTable)
    if (row.*field == name) return row.dtype;
  return std::nullopt;
}

}  // namespace

const DTypeInfo& dtype_info(DType dtype) {
  const DTypeInfo& row = kTable[static_cast<size_t>(dtype)];
  MAXPORT_CHECK(row.dtype == dtype);
  return row;
}

std::span<const DTypeInfo> all_dtypes() { return kTable; }

std::optional<DType> dtype_from_name(std::string_view name) { return find(name, &DTypeInfo::name); }
std::optional<DType> dtype_from_safetensors(std::string_view name) { return find(name, &DTypeInfo::safetensors); }
std::optional<DType> dtype_from_zarr2(std::string_view name) { return find(name, &DTypeInfo::zarr2); }

}  // namespace maxport
