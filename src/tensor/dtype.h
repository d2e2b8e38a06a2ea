// Element types, and the one table of their names in every format.
//
// Names: safetensors (header "dtype"), NumPy / ml_dtypes (also Zarr v3 data_type), Zarr v2 ("dtype" of .zarray).
// Elements smaller than a byte occupy one byte each in Zarr (formats.md 2.1) but are packed in safetensors, so their
// size is stated in bits for safetensors and in bytes for everything in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace maxport {

enum class DType : uint8_t {
  kBool,
  kInt2, kInt4, kUint4,
  kInt8, kInt16, kInt32, kInt64,
  kUint8, kUint16, kUint32, kUint64,
  kFloat4E2m1fn, kFloat6E2m3fn, kFloat6E3m2fn,
  kFloat8E3m4, kFloat8E4m3fn, kFloat8E4m3fnuz, kFloat8E4m3b11fnuz, kFloat8E5m2, kFloat8E5m2fnuz, kFloat8E8m0fnu,
  kFloat16, kBfloat16, kFloat32, kFloat64,
  kComplex64, kComplex128,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;         ///< NumPy / ml_dtypes name, e.g. "bfloat16"; also the Zarr v3 data_type
  std::string_view zarr2;        ///< e.g. "<f4"; the same as `name` for ml_dtypes types
  std::string_view safetensors;  ///< e.g. "BF16"; empty when that format has no such type
  int bits;                      ///< packed size (safetensors)
  int bytes;                     ///< size of one element in memory and in Zarr
  bool floating;
};

const DTypeInfo& dtype_info(DType dtype);
inline std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }
/// Size of one element in memory, in bytes.
inline int64_t dtype_bytes(DType dtype) { return dtype_info(dtype).bytes; }
inline bool is_floating(DType dtype) { return dtype_info(dtype).floating; }

std::span<const DTypeInfo> all_dtypes();
std::optional<DType> dtype_from_name(std::string_view name);
std::optional<DType> dtype_from_safetensors(std::string_view name);
std::optional<DType> dtype_from_zarr2(std::string_view name);

}  // namespace maxport
