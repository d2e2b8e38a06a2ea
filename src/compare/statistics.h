// How far two runs of elements are from each other.
//
// Two elements are equal when their bits are: a NaN equals a NaN of the same bits, and +0 differs from -0 (by a difference
// of 0 and one unit in the last place). Elements of different types are compared as the numbers they are. Differing
// elements of which one is not finite have no difference that could be averaged; they are counted apart and enter neither
// maximum, mean, cosine nor units in the last place.
//
// Statistics of consecutive runs are merged in order, so that the result does not depend on threads.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/bytes.h"
#include "tensor/dtype.h"

namespace maxport::compare {

inline constexpr uint64_t kNowhere = std::numeric_limits<uint64_t>::max();

/// One element as stored.
struct Element {
  std::array<std::byte, 16> bits = {};
};

struct Statistics {
  DType a_dtype = DType::kFloat32, b_dtype = DType::kFloat32;  ///< in which elements were read
  uint64_t elements = 0;
  uint64_t differing = 0;   ///< bits (of one type) or numbers (of two types) are not equal
  uint64_t beyond = 0;      ///< of those, further apart than the tolerance
  uint64_t non_finite = 0;  ///< of the differing ones, those with an infinity or a NaN on either side
  uint64_t equal_nans = 0;  ///< NaN on both sides with equal bits; they count as equal
  double max_difference = 0;
  double sum_difference = 0;
  double dot = 0, a_squares = 0, b_squares = 0;
  uint64_t max_ulp = 0;         ///< only where both types are one
  uint64_t first = kNowhere;    ///< position of the first differing element, as the caller counts
  Element first_a, first_b;

  void merge(const Statistics& other);
  /// Mean of |a - b| over all elements that have one; 0 without elements.
  double mean_difference() const;
  /// 1 when every element is equal; nothing where a side has no direction (all zero) or a sum overflows.
  std::optional<double> cosine() const;
};

/// True for types whose elements are numbers here; others (complex, packed bytes of less than 8 bits) are compared by
/// their bits alone.
bool is_number(DType dtype);

/// Units in the last place between two elements of one floating type: how many values of the type lie between them, plus
/// one. For integers the plain difference.
uint64_t ulp_distance(DType dtype, const std::byte* a, const std::byte* b);

/// The number that an element is.
double number(DType dtype, const std::byte* element);

/// Adds `count` elements at `a` and `b`, dense, the first of which is at `position`. An element passes the tolerance when
/// |a - b| <= tolerance. Types that are no numbers must be the same on both sides.
void compare_run(DType a_dtype, const std::byte* a, DType b_dtype, const std::byte* b, size_t count, uint64_t position,
                 double tolerance, Statistics& out);

}  // namespace maxport::compare
