// The roles of a configuration that are worth a line, each with where its value comes from.
#pragma once

#include "huggingface/config_roles.h"
#include "inspect/inspect.h"

namespace maxport::inspect {

/// Roles that the configuration gives a value, as read or derived; in a fixed order. `head_in_files`: the model has an
/// output head of its own, which decides where the configuration does not.
std::vector<Role> roles_of(const huggingface::ConfigRoles& config, bool head_in_files);

}  // namespace maxport::inspect
