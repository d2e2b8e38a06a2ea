// Memory for bulk data that is used again and again.
#pragma once

#include <cstdlib>
#include <memory>

#include "base/bytes.h"

namespace maxport {

/// Memory that grows as needed and is never cleared. Of several megabytes, it asks for huge pages: where rows of a matrix
/// lie a page apart, looking up addresses would cost as much as reading them.
class Buffer {
 public:
  /// At least `count` bytes with unspecified content. Growing drops what was there. Throws std::bad_alloc.
  MutableByteSpan take(size_t count) {
    if (count > capacity_) grow(count);
    return {bytes_.get(), count};
  }
  /// All of the memory, for reading what was put into it.
  ByteSpan content() const { return {bytes_.get(), capacity_}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  void grow(size_t count);

  std::unique_ptr<std::byte[], Free> bytes_;
  size_t capacity_ = 0;
};

}  // namespace maxport
