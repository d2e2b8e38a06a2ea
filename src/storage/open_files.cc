#include "storage/open_files.h"

#include <sys/resource.h>

#include <filesystem>
#include <iterator>

namespace maxport {

Result<> reserve_open_files(uint64_t count) {
  rlimit limit;
  std::error_code error;
  std::filesystem::directory_iterator open("/proc/self/fd", error);
  if (error || ::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const uint64_t needed = count + static_cast<uint64_t>(std::distance(begin(open), end(open)));
  if (needed <= limit.rlim_cur) return {};
  if (needed <= limit.rlim_max) {
    limit.rlim_cur = needed;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  }
  return fail(ErrorKind::kResourceLimit,
              "up to {} files will be open at once, but the limit is {}; raise it (ulimit -n {}), or use fewer --threads", needed,
              uint64_t{limit.rlim_max}, needed);
}

}  // namespace maxport
