// The token ids of a forward pass: one or more sequences of any lengths, one after another.
#pragma once

#include <cstdint>
#include <vector>

namespace maxport::forward {

struct Batch {
  struct Sequence {
    int64_t begin, length;  ///< rows of the activations
  };

  std::vector<int32_t> ids;
  std::vector<Sequence> sequences;
  std::vector<int64_t> positions;  ///< of each row within its sequence

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }

  void append(const std::vector<int32_t>& sequence) {
    sequences.push_back({tokens(), static_cast<int64_t>(sequence.size())});
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    for (int64_t i = 0; i < static_cast<int64_t>(sequence.size()); ++i) positions.push_back(i);
  }
};

}  // namespace maxport::forward
