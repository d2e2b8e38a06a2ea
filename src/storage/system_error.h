// Turns the system's error numbers into errors, and makes transfers complete.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace maxport {

/// "<doing> <path>: <the system's reason>", with the kind that fits `error_number`: kNotFound for missing files,
/// kResourceLimit for full disks, quotas and descriptors, kInvalidArgument for names and targets that cannot work, kIo
/// for the rest.
Error system_error(int error_number, std::string_view doing, std::string_view path);

/// What a sequence of reads or writes achieved.
struct Transfer {
  size_t done = 0;
  int error_number = 0;  ///< 0 when all bytes were moved or the end of the file was reached
};

/// Repeats `step(position, count)`, which works like pread or pwrite, until `count` bytes were moved, it returns 0, or
/// it fails with anything but EINTR.
template <class Step>
Transfer transfer_all(size_t count, Step step) {
  // Linux moves at most 0x7ffff000 bytes a call; staying below keeps the result representable everywhere.
  constexpr size_t kMaxStep = size_t{1} << 30;
  Transfer transfer;
  while (transfer.done < count) {
    const auto moved = step(transfer.done, std::min(count - transfer.done, kMaxStep));
    if (moved < 0) {
      if (errno == EINTR) continue;
      transfer.error_number = errno;
      return transfer;
    }
    if (moved == 0) return transfer;
    transfer.done += static_cast<size_t>(moved);
  }
  return transfer;
}

}  // namespace maxport
