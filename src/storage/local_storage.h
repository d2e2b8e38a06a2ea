// Parts of the local file system that tests drive on their own; everyone else uses local_storage() of storage.h.
#pragma once

#include <string>

#include "base/error.h"

namespace maxport {

/// Moves without replacing on file systems that cannot do so in one step: claims the target's name with an empty file
/// or folder, which fails when it is taken, and then renames over the claim.
Result<> rename_by_claim(const std::string& from, const std::string& to);

}  // namespace maxport
