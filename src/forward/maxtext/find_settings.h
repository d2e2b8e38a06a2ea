// The MaxText settings that a checkpoint is run with.
#pragma once

#include "forward/maxtext/families.h"

namespace maxport::forward {

/// In this order: the given configuration file; maxtext.yml beside the step; what the record in the step says about the
/// model; the model_name among the request's settings. kInvalidArgument when none of them is there.
Result<maxtext::Settings> find_settings(Storage& storage, const MaxtextRequest& request,
                                        const CheckpointWeights& weights);

}  // namespace maxport::forward
