#include "tensor/pairs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

// Nothing has SSSE3 that has not SSE4; vectors without a size known to the compiler gain nothing here.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/pairs.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace maxport::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

using Vector = hn::CappedTag<uint8_t, 32>;

HWY_INLINE hn::Vec<Vector> load(const std::byte* in) {
  return hn::LoadU(Vector(), reinterpret_cast<const uint8_t*>(in));
}
HWY_INLINE void store(hn::Vec<Vector> v, std::byte* out) {
  hn::StoreU(v, Vector(), reinterpret_cast<uint8_t*>(out));
}

template <class T>
size_t interleave_vectors(const std::byte* first, const std::byte* second, std::byte* out, size_t count) {
  const Vector d;
  const hn::Repartition<T, Vector> elements;
  const size_t width = hn::Lanes(d), lanes = hn::Lanes(elements);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes, out += 2 * width) {
    const auto a = hn::BitCast(elements, load(first + i * sizeof(T)));
    const auto b = hn::BitCast(elements, load(second + i * sizeof(T)));
    const auto lower = hn::BitCast(d, hn::InterleaveLower(elements, a, b));
    const auto upper = hn::BitCast(d, hn::InterleaveUpper(elements, a, b));
    if constexpr (hn::MaxLanes(d) == 32) {  // interleaving goes by 16 bytes
      store(hn::ConcatLowerLower(d, upper, lower), out);
      store(hn::ConcatUpperUpper(d, upper, lower), out + width);
    } else {
      store(lower, out);
      store(upper, out + width);
    }
  }
  return i;
}

/// Never reads the last odd element, so that `second` may be absent and the input end after the last even one.
template <class T>
size_t separate_vectors(const std::byte* in, std::byte* first, std::byte* second, size_t count) {
  const hn::Repartition<T, Vector> elements;
  const size_t width = hn::Lanes(Vector()), lanes = hn::Lanes(elements);
  size_t i = 0;
  for (; i + lanes < count; i += lanes, in += 2 * width) {
    const auto a = hn::BitCast(elements, load(in)), b = hn::BitCast(elements, load(in + width));
    store(hn::BitCast(Vector(), hn::ConcatEven(elements, b, a)), first + i * sizeof(T));
    if (second != nullptr) store(hn::BitCast(Vector(), hn::ConcatOdd(elements, b, a)), second + i * sizeof(T));
  }
  return i;
}

#endif

template <class T>
void interleave(const std::byte* first, const std::byte* second, std::byte* out, size_t count) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  i = interleave_vectors<T>(first, second, out, count);
#endif
  for (; i < count; ++i) {
    std::memcpy(out + 2 * i * sizeof(T), first + i * sizeof(T), sizeof(T));
    std::memcpy(out + (2 * i + 1) * sizeof(T), second + i * sizeof(T), sizeof(T));
  }
}

template <class T>
void separate(const std::byte* in, std::byte* first, std::byte* second, size_t count) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  i = separate_vectors<T>(in, first, second, count);
#endif
  for (; i < count; ++i) {
    std::memcpy(first + i * sizeof(T), in + 2 * i * sizeof(T), sizeof(T));
    if (second != nullptr) std::memcpy(second + i * sizeof(T), in + (2 * i + 1) * sizeof(T), sizeof(T));
  }
}

using Interleave = void (*)(const std::byte* first, const std::byte* second, std::byte* out, size_t count);
Interleave find_interleave(int64_t element_bytes) {
  return element_bytes == 1 ? interleave<uint8_t> : element_bytes == 2 ? interleave<uint16_t> : interleave<uint32_t>;
}

using Separate = void (*)(const std::byte* in, std::byte* first, std::byte* second, size_t count);
Separate find_separate(int64_t element_bytes) {
  return element_bytes == 1 ? separate<uint8_t> : element_bytes == 2 ? separate<uint16_t> : separate<uint32_t>;
}

}  // namespace maxport::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maxport {

HWY_EXPORT(find_interleave);
HWY_EXPORT(find_separate);

namespace {

/// The axes without those at two places.
AxisList others(const AxisList& axes, size_t a, size_t b) {
  AxisList out;
  for (size_t k = 0; k < axes.size(); ++k)
    if (k != a && k != b) out.push_back(axes[k]);
  return out;
}

/// Target runs of pairs: the pair's axis is innermost, the next one counts the pairs and runs along the source.
bool copy_interleaved(const Walk& walk) {
  const AxisList& axes = walk.axes;
  if (axes.size() < 2) return false;
  const Axis pair = axes.back(), run = axes[axes.size() - 2];
  if (pair.extent != 2 || pair.target != walk.target_bytes) return false;
  if (run.source != walk.source_bytes || run.target != 2 * walk.target_bytes) return false;
  const auto interleave = HWY_DYNAMIC_DISPATCH(find_interleave)(walk.source_bytes);
  for_each_index(others(axes, axes.size() - 1, axes.size() - 2), walk.source, walk.target,
                 [&](const std::byte* source, std::byte* target) {
                   interleave(source, source + pair.source, target, static_cast<size_t>(run.extent));
                 });
  return true;
}

/// Target runs of every second source element; the pair's axis, if the walk has it, says where the others go.
bool copy_separated(const Walk& walk) {
  const AxisList& axes = walk.axes;
  if (axes.empty()) return false;
  const size_t last = axes.size() - 1;
  const Axis run = axes[last];
  if (run.target != walk.target_bytes || run.source != 2 * walk.source_bytes) return false;
  const auto is_pair = [&](const Axis& axis) { return axis.extent == 2 && axis.source == walk.source_bytes; };
  const auto pair = static_cast<size_t>(std::ranges::find_if(axes, is_pair) - axes.begin());
  const auto separate = HWY_DYNAMIC_DISPATCH(find_separate)(walk.source_bytes);
  for_each_index(others(axes, last, pair), walk.source, walk.target, [&](const std::byte* source, std::byte* target) {
    std::byte* second = pair < axes.size() ? target + axes[pair].target : nullptr;
    separate(source, target, second, static_cast<size_t>(run.extent));
  });
  return true;
}

}  // namespace

bool copy_pairs(const Walk& walk) {
  if (walk.source_bytes > 4) return false;
  return copy_interleaved(walk) || copy_separated(walk);
}

}  // namespace maxport
#endif
