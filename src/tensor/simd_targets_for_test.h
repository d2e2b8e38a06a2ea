// Runs a test once for each set of instructions that this program was built for and this processor has.
#pragma once

#include <gtest/gtest.h>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_SSSE3  // as the kernels
#include <hwy/targets.h>

namespace maxport {

template <class Body>
void for_each_simd_target(Body body) {
  const auto choose = [](int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  for (int64_t left = hwy::SupportedTargets() & (HWY_TARGETS); left != 0; left &= left - 1) {
    const int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    choose(target);
    body();
  }
  choose(0);
}

}  // namespace maxport
