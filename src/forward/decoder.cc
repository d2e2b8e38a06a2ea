#include "forward/decoder.h"

#include <fmt/format.h>

namespace maxport::forward {

Result<Matrix> run(Decoder& decoder, const Batch& batch, const std::function<bool(int64_t)>& progress) {
  if (batch.tokens() == 0)
    return fail(ErrorKind::kInvalidArgument, "there is no token to start from; give ids, a prompt or a file");
  MAXPORT_ASSIGN_OR_RETURN(Matrix x, decoder.embed(batch));
  for (int64_t i = 0; i < decoder.layers(); ++i) {
    if (progress && !progress(i)) return fail(ErrorKind::kInterrupted, "stopped before layer {}", i);
    MAXPORT_RETURN_IF_ERROR(with_context(decoder.layer(i, batch, x), fmt::format("layer {}", i)));
  }
  return decoder.head(std::move(x));
}

}  // namespace maxport::forward
