// A comparison as lines of text and as JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "compare/compare.h"

namespace maxport::compare {

/// One tensor, one line, without the line's end.
std::string tensor_line(const TensorComparison& tensor);
/// What all of them come to.
std::string summary_line(const Report& report, bool ignore_dtypes);
/// The whole report. Numbers that JSON cannot say (NaN, infinities) are text.
OrderedJson to_json(const Report& report, bool ignore_dtypes);

}  // namespace maxport::compare
