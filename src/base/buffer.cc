#include "base/buffer.h"

#include <sys/mman.h>

#include <new>

namespace maxport {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

std::byte* allocate(size_t count) {
  const bool huge = count >= kHugePageBytes;
  const size_t alignment = huge ? kHugePageBytes : alignof(std::max_align_t);
  void* bytes = std::aligned_alloc(alignment, (count + alignment - 1) / alignment * alignment);
  if (bytes == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  // Whole pages only: a page for the last bytes would count as memory in use. A kernel that refuses leaves small pages.
  if (huge) (void)::madvise(bytes, count / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(bytes);
}

}  // namespace

void Buffer::grow(size_t count) {
  bytes_.reset();  // first, so that both are never held
  capacity_ = 0;
  bytes_.reset(allocate(count));
  capacity_ = count;
}

}  // namespace maxport
