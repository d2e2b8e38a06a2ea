#include "tensor/convert_kernels.h"

#include <cstring>

#include "tensor/minifloat.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_SSSE3  // nothing has it that has not SSE4
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/convert_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace maxport::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Kind = ElementOp::Kind;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using SignedWords = hn::RebindToSigned<Floats>;
using VecF = hn::Vec<Floats>;
using VecU = hn::Vec<Words>;

// Vectors are loaded and stored as bytes, so that no alignment is ever assumed.
template <class T>
HWY_INLINE VecU load_codes(const std::byte* in) {
  const hn::Rebind<T, Words> narrow;
#if HWY_TARGET == HWY_SCALAR
  T code;
  std::memcpy(&code, in, sizeof code);
  const auto codes = hn::Set(narrow, code);
#else
  const hn::Repartition<uint8_t, decltype(narrow)> bytes;
  const auto codes = hn::BitCast(narrow, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(in)));
#endif
  if constexpr (sizeof(T) == 4) {
    return codes;
  } else {
    return hn::PromoteTo(Words(), codes);
  }
}

template <class T>
HWY_INLINE void store_codes(VecU codes, std::byte* out) {
#if HWY_TARGET == HWY_SCALAR
  const T code = static_cast<T>(hn::GetLane(codes));
  std::memcpy(out, &code, sizeof code);
#else
  const hn::Rebind<T, Words> narrow;
  const hn::Repartition<uint8_t, decltype(narrow)> bytes;
  const auto store = [&](auto v) { hn::StoreU(hn::BitCast(bytes, v), bytes, reinterpret_cast<uint8_t*>(out)); };
  if constexpr (sizeof(T) == 4) {
    store(codes);
  } else {
    store(hn::TruncateTo(narrow, codes));
  }
#endif
}

HWY_INLINE VecU word(uint32_t value) { return hn::Set(Words(), value); }

/// a > b for words below 2^31.
HWY_INLINE auto greater(VecU a, VecU b) {
  return hn::RebindMask(Words(), hn::Gt(hn::BitCast(SignedWords(), a), hn::BitCast(SignedWords(), b)));
}

/// Bit patterns of powers of two in float32.
constexpr uint32_t power_of_two(int exponent) { return static_cast<uint32_t>(exponent + 127) << 23; }

struct Float32 {
  using Code = uint32_t;
  static HWY_INLINE VecF decode(VecU codes) { return hn::BitCast(Floats(), codes); }
  static HWY_INLINE VecU encode(VecF values) { return hn::BitCast(Words(), values); }
};

struct Brain {
  using Code = uint16_t;
  static HWY_INLINE VecF decode(VecU codes) { return hn::BitCast(Floats(), hn::ShiftLeft<16>(codes)); }
  static HWY_INLINE VecU encode(VecF values) {
    const VecU bits = hn::BitCast(Words(), values);
    const VecU odd = hn::And(hn::ShiftRight<16>(bits), word(1));
    const VecU rounded = hn::Add(bits, hn::Add(word(0x7FFF), odd));
    const auto is_nan = greater(hn::And(bits, word(0x7FFFFFFF)), word(0x7F800000));
    const VecU nan = hn::Or(hn::And(bits, word(0x80000000)), word(kNanF32));
    return hn::ShiftRight<16>(hn::IfThenElse(is_nan, nan, rounded));
  }
};

/// float16 and the types of 8 bits, by moving the fields of the bit pattern; subnormals by float32 additions whose
/// operands and results are normal, so that no processor setting and no slow path touches them.
template <MiniFloat kFormat, bool kMovesNanPayload>
struct Mini {
  using Code = std::conditional_t<kFormat.bits() == 16, uint16_t, uint8_t>;
  static constexpr int kShift = 23 - kFormat.mantissa_bits;
  static constexpr int kSignShift = 32 - kFormat.bits();
  static constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kFormat.bias) << 23;
  static constexpr uint32_t kLowestNormal = power_of_two(1 - kFormat.bias);

  static HWY_INLINE VecF decode(VecU codes) {
    const VecU magnitude = hn::And(codes, word(kFormat.magnitude_mask()));
    const VecU sign = hn::ShiftLeft<kSignShift>(hn::And(codes, word(kFormat.sign_bit())));
    const VecU moved = hn::ShiftLeft<kShift>(magnitude);
    const VecF hidden = hn::BitCast(Floats(), word(kLowestNormal));
    const VecF subnormal = hn::Sub(hn::BitCast(Floats(), hn::Add(moved, word(kLowestNormal))), hidden);
    VecU bits = hn::Add(moved, word(kRebias));
    const auto is_subnormal = greater(word(1u << kFormat.mantissa_bits), magnitude);
    bits = hn::IfThenElse(is_subnormal, hn::BitCast(Words(), subnormal), bits);
    if constexpr (kFormat.specials == Specials::kIeee) {
      const auto is_special = greater(magnitude, word(kFormat.top_exponent() - 1));
      bits = hn::IfThenElse(is_special, hn::Or(bits, word(0x7F800000)), bits);
    }
    if constexpr (!kMovesNanPayload) {
      constexpr uint32_t kLast = kFormat.specials == Specials::kIeee ? kFormat.top_exponent() : kFormat.largest();
      bits = hn::IfThenElse(greater(magnitude, word(kLast)), word(kNanF32), bits);
    }
    return hn::BitCast(Floats(), hn::Or(bits, sign));
  }

  static HWY_INLINE VecU encode(VecF values) {
    const VecU bits = hn::BitCast(Words(), values);
    const VecU magnitude = hn::And(bits, word(0x7FFFFFFF));
    const VecU sign = hn::ShiftRight<kSignShift>(hn::And(bits, word(0x80000000)));
    // Beyond this power of two every code is infinity or NaN.
    const VecU clamped = hn::Min(magnitude, word(power_of_two((1 << kFormat.exponent_bits) - kFormat.bias)));
    const VecU odd = hn::And(hn::ShiftRight<kShift>(clamped), word(1));
    constexpr uint32_t kBelowHalf = (1u << (kShift - 1)) - 1;
    const VecU rounded = hn::Add(hn::Sub(clamped, word(kRebias)), hn::Add(word(kBelowHalf), odd));
    // Adding the number whose last place is the smallest subnormal makes the processor round to it.
    const VecU magic = word(power_of_two(1 - kFormat.bias + kShift));
    const VecF sum = hn::Add(hn::BitCast(Floats(), clamped), hn::BitCast(Floats(), magic));
    const VecU subnormal = hn::Sub(hn::BitCast(Words(), sum), magic);
    VecU codes = hn::IfThenElse(greater(word(kLowestNormal), clamped), subnormal, hn::ShiftRight<kShift>(rounded));
    constexpr uint32_t kOver = kFormat.specials == Specials::kIeee ? kFormat.top_exponent() : kFormat.largest() + 1;
    codes = hn::Min(codes, word(kOver));
    codes = hn::IfThenElse(greater(magnitude, word(0x7F800000)), word(kFormat.canonical_nan(false)), codes);
    return hn::Or(codes, sign);
  }
};

using Half = Mini<kHalf, true>;
using E4m3 = Mini<kE4m3fn, false>;
using E5m2 = Mini<kE5m2, false>;

template <class Source, class Round, Kind kKind, class Target>
HWY_INLINE void convert_vector(const std::byte* in, VecF operand, std::byte* out) {
  VecF values = Source::decode(load_codes<typename Source::Code>(in));
  if constexpr (!std::same_as<Round, Float32>) values = Round::decode(Round::encode(values));
  if constexpr (kKind == Kind::kMultiply) values = hn::Mul(values, operand);
  if constexpr (kKind == Kind::kAdd) values = hn::Add(values, operand);
  store_codes<typename Target::Code>(Target::encode(values), out);
}

template <class Source, class Round, Kind kKind, class Target>
void convert_run(const ElementOp& op, const std::byte* in, std::byte* out, size_t count) {
  constexpr size_t kIn = sizeof(typename Source::Code), kOut = sizeof(typename Target::Code);
  const size_t lanes = hn::Lanes(Floats());
  std::byte in_lanes[hn::MaxLanes(Floats()) * kIn], out_lanes[hn::MaxLanes(Floats()) * kOut];
  std::byte* const result = out;
  const bool partial = count < lanes;
  if (partial) {
    std::memset(in_lanes, 0, sizeof in_lanes);
    std::memcpy(in_lanes, in, count * kIn);
    in = in_lanes, out = out_lanes;
  }
  const VecF operand = hn::Set(Floats(), op.operand);
  // The last vector may overlap the one before it: the same elements give the same results.
  const size_t last = partial ? 0 : count - lanes;
  for (size_t i = 0;; i = i + lanes < last ? i + lanes : last) {
    convert_vector<Source, Round, kKind, Target>(in + i * kIn, operand, out + i * kOut);
    if (i == last) break;
  }
  if (partial) std::memcpy(result, out_lanes, count * kOut);
}

template <class Source, class Round, class Target>
ElementKernel kernel_of_kind(const ElementOp& op) {
  if (op.kind == Kind::kCopy) return convert_run<Source, Round, Kind::kCopy, Target>;
  // No model computes with weights of 8 bits.
  if constexpr (sizeof(typename Source::Code) > 1 && sizeof(typename Target::Code) > 1) {
    if (op.kind == Kind::kMultiply) return convert_run<Source, Round, Kind::kMultiply, Target>;
    if (op.kind == Kind::kAdd) return convert_run<Source, Round, Kind::kAdd, Target>;
  }
  return nullptr;
}

template <class Source, class Round>
ElementKernel kernel_to_target(const ElementOp& op) {
  switch (op.target) {
    case DType::kFloat32: return kernel_of_kind<Source, Round, Float32>(op);
    case DType::kBfloat16: return kernel_of_kind<Source, Round, Brain>(op);
    case DType::kFloat16: return kernel_of_kind<Source, Round, Half>(op);
    case DType::kFloat8E4m3fn: return kernel_of_kind<Source, Round, E4m3>(op);
    case DType::kFloat8E5m2: return kernel_of_kind<Source, Round, E5m2>(op);
    default: return nullptr;
  }
}

/// For a `compute_input` that holds every value of the source.
template <class Source>
ElementKernel kernel_without_rounding(const ElementOp& op) {
  if (op.compute_input != op.source && op.compute_input != DType::kFloat32) return nullptr;
  return kernel_to_target<Source, Float32>(op);
}

ElementKernel find_kernel(const ElementOp& op) {
  switch (op.source) {
    case DType::kFloat32:
      if (op.compute_input == DType::kBfloat16) return kernel_to_target<Float32, Brain>(op);
      return kernel_without_rounding<Float32>(op);
    case DType::kBfloat16: return kernel_without_rounding<Brain>(op);
    case DType::kFloat16: return kernel_without_rounding<Half>(op);
    case DType::kFloat8E4m3fn: return kernel_without_rounding<E4m3>(op);
    case DType::kFloat8E5m2: return kernel_without_rounding<E5m2>(op);
    default: return nullptr;
  }
}

}  // namespace maxport::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maxport {

HWY_EXPORT(find_kernel);

ElementKernel vector_kernel(const ElementOp& op) { return HWY_DYNAMIC_DISPATCH(find_kernel)(op); }

}  // namespace maxport
#endif
