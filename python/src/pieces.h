// Long reads cut into pieces, between which Python may act on a signal.
#pragma once

#include <functional>

#include "checkpoint.h"

namespace maxport::python {

/// Reads `region`, which must lie within the tensor, densely into `out`, which must have its size. Pieces have about
/// 64 MiB and end where granules do. Before each piece `go_on` is asked; false ends the read with kInterrupted.
Result<> read_in_pieces(const NamedTensor& tensor, const Box& region, MutableByteSpan out,
                        const std::function<bool()>& go_on);

}  // namespace maxport::python
