// Transposing within 16-byte lanes, for Highway kernels: included once for each instruction set.
#if defined(MAXPORT_TENSOR_TRANSPOSE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MAXPORT_TENSOR_TRANSPOSE_LANES_INL_H_
#undef MAXPORT_TENSOR_TRANSPOSE_LANES_INL_H_
#else
#define MAXPORT_TENSOR_TRANSPOSE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace maxport::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

#undef MAXPORT_INLINE_LAMBDA
#define MAXPORT_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

template <size_t kCount, class Body>
HWY_INLINE void unrolled(Body body) {
  [&]<size_t... i>(std::index_sequence<i...>) MAXPORT_INLINE_LAMBDA {
    (body(std::integral_constant<size_t, i>()), ...);
  }(std::make_index_sequence<kCount>());
}

/// Of each 16 bytes of kCount rows of kCount elements T: element j of v[i] becomes element i of v[j]. One stage is a
/// perfect shuffle of all elements; log2(kCount) of them transpose.
template <class T, size_t kStages, size_t kCount, class D>
HWY_INLINE void transpose_lanes(D d, hn::Vec<D> (&v)[kCount]) {
  const hn::Repartition<T, D> elements;
  hn::Vec<D> shuffled[kCount];
  unrolled<kCount / 2>([&](auto i) MAXPORT_INLINE_LAMBDA {
    const auto a = hn::BitCast(elements, v[i]), b = hn::BitCast(elements, v[i + kCount / 2]);
    shuffled[2 * i] = hn::BitCast(d, hn::InterleaveLower(elements, a, b));
    shuffled[2 * i + 1] = hn::BitCast(d, hn::InterleaveUpper(elements, a, b));
  });
  unrolled<kCount>([&](auto i) MAXPORT_INLINE_LAMBDA { v[i] = shuffled[i]; });
  if constexpr (kStages > 1) transpose_lanes<T, kStages - 1>(d, v);
}

#endif  // HWY_TARGET

}  // namespace maxport::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
