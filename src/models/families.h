// One function a family; families.cc lists them.
#pragma once

#include "models/family.h"

namespace maxport::models {

Result<ParameterMap> llama(const ModelContext& context);

}  // namespace maxport::models
