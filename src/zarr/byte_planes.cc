#include "zarr/byte_planes.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "zarr/byte_planes.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace maxport::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements that vectors take; returns how many.
template <size_t kBytes>
size_t split_vectors(const uint8_t* in, uint8_t* out, size_t elements, size_t stride) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t done = 0;
  if constexpr (kBytes == 2) {
    for (; done + lanes <= elements; done += lanes) {
      hn::Vec<decltype(d)> a, b;
      hn::LoadInterleaved2(d, in + 2 * done, a, b);
      hn::StoreU(a, d, out + done);
      hn::StoreU(b, d, out + stride + done);
    }
  } else if constexpr (kBytes == 4) {
    for (; done + lanes <= elements; done += lanes) {
      hn::Vec<decltype(d)> a, b, c, e;
      hn::LoadInterleaved4(d, in + 4 * done, a, b, c, e);
      hn::StoreU(a, d, out + done);
      hn::StoreU(b, d, out + stride + done);
      hn::StoreU(c, d, out + 2 * stride + done);
      hn::StoreU(e, d, out + 3 * stride + done);
    }
  }
  return done;
}

template <size_t kBytes>
size_t join_vectors(const uint8_t* in, uint8_t* out, size_t elements) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto plane = [&](size_t i, size_t done) { return hn::LoadU(d, in + i * elements + done); };
  size_t done = 0;
  if constexpr (kBytes == 2) {
    for (; done + lanes <= elements; done += lanes) hn::StoreInterleaved2(plane(0, done), plane(1, done), d, out + 2 * done);
  } else if constexpr (kBytes == 4) {
    for (; done + lanes <= elements; done += lanes)
      hn::StoreInterleaved4(plane(0, done), plane(1, done), plane(2, done), plane(3, done), d, out + 4 * done);
  }
  return done;
}

template <size_t kBytes>
void split(const uint8_t* in, uint8_t* out, size_t elements, size_t stride) {
  for (size_t i = split_vectors<kBytes>(in, out, elements, stride); i < elements; ++i)
    for (size_t byte = 0; byte < kBytes; ++byte) out[byte * stride + i] = in[i * kBytes + byte];
}

template <size_t kBytes>
void join(const uint8_t* in, uint8_t* out, size_t elements) {
  for (size_t i = join_vectors<kBytes>(in, out, elements); i < elements; ++i)
    for (size_t byte = 0; byte < kBytes; ++byte) out[i * kBytes + byte] = in[byte * elements + i];
}

void split_any(size_t element_bytes, const uint8_t* in, uint8_t* out, size_t elements, size_t stride) {
  if (element_bytes == 2) split<2>(in, out, elements, stride);
  else if (element_bytes == 4) split<4>(in, out, elements, stride);
  else split<8>(in, out, elements, stride);
}

void join_any(size_t element_bytes, const uint8_t* in, uint8_t* out, size_t elements) {
  if (element_bytes == 2) join<2>(in, out, elements);
  else if (element_bytes == 4) join<4>(in, out, elements);
  else join<8>(in, out, elements);
}

}  // namespace maxport::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace maxport {
HWY_EXPORT(split_any);
HWY_EXPORT(join_any);

namespace zarr {
namespace {

const uint8_t* octets(ByteSpan bytes) { return reinterpret_cast<const uint8_t*>(bytes.data()); }
uint8_t* octets(MutableByteSpan bytes) { return reinterpret_cast<uint8_t*>(bytes.data()); }

}  // namespace

bool has_byte_planes(size_t element_bytes) {
  return element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
}

void split_bytes(size_t element_bytes, ByteSpan in, MutableByteSpan out, size_t stride) {
  const size_t elements = in.size() / element_bytes;
  MAXPORT_CHECK(has_byte_planes(element_bytes) && in.size() % element_bytes == 0 && elements <= stride &&
                out.size() >= (element_bytes - 1) * stride + elements);
  if (element_bytes > 1) HWY_DYNAMIC_DISPATCH(split_any)(element_bytes, octets(in), octets(out), elements, stride);
  else if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
}

void join_bytes(size_t element_bytes, ByteSpan in, MutableByteSpan out) {
  MAXPORT_CHECK(has_byte_planes(element_bytes) && in.size() == out.size() && in.size() % element_bytes == 0);
  if (element_bytes > 1) HWY_DYNAMIC_DISPATCH(join_any)(element_bytes, octets(in), octets(out), in.size() / element_bytes);
  else if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
}

}  // namespace zarr
}  // namespace maxport
#endif
