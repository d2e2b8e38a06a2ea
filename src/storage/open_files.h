// How many files this process may hold open.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace maxport {

/// Makes sure that `count` more files can be open at once, raising the soft limit (setrlimit(2), RLIMIT_NOFILE) where that
/// is allowed. kResourceLimit otherwise, with both numbers and what to do. Good where the system does not tell.
Result<> reserve_open_files(uint64_t count);

}  // namespace maxport
