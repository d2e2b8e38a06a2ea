// An inspection as a table and as JSON.
#pragma once

#include <string>

#include "inspect/inspect.h"

namespace maxport::inspect {

/// Several lines: what it is, its configuration, one line a tensor, totals.
std::string table(const Inspection& inspection);
OrderedJson to_json(const Inspection& inspection);
/// "2.5x", or "-" where nothing is stored.
std::string ratio_text(uint64_t bytes, uint64_t stored);

}  // namespace maxport::inspect
