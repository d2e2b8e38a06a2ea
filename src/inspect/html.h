// An inspection as one HTML page that needs nothing else: a treemap of the parameters, and of the chosen one its chunks and
// a histogram of its values.
//
// All text from outside is in one JSON block in which '<' and '&' are escaped, and the page's own code puts it into the
// document as text only, so that no name can become markup.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/inspect.h"
#include "inspect/values.h"

namespace maxport::inspect {

/// `values` has one entry a tensor; `sample` is said in the page.
std::string html(const Inspection& inspection, const std::vector<std::optional<Values>>& values, std::optional<uint64_t> sample);

}  // namespace maxport::inspect
