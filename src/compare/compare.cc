#include "compare/compare.h"

#include <algorithm>
#include <cmath>

#include "compare/pairs.h"

namespace maxport::compare {

std::string_view status_name(Status status) {
  switch (status) {
    case Status::kEqual: return "equal";
    case Status::kWithinTolerance: return "within tolerance";
    case Status::kDifferent: return "different";
    case Status::kOtherDtype: return "other dtype";
    case Status::kOtherShape: return "other shape";
    case Status::kOnlyInA: return "only in A";
    case Status::kOnlyInB: return "only in B";
  }
  return "";
}

bool Report::equal(bool ignore_dtypes) const {
  return std::ranges::all_of(tensors, [&](const TensorComparison& tensor) {
    if (tensor.status == Status::kEqual || tensor.status == Status::kWithinTolerance) return true;
    return ignore_dtypes && tensor.status == Status::kOtherDtype && tensor.compared && tensor.statistics.beyond == 0;
  });
}

size_t Report::count(Status status) const { return static_cast<size_t>(std::ranges::count(tensors, status, &TensorComparison::status)); }

Result<Report> compare(Storage& storage, const std::string& a, const std::string& b, const Options& options) {
  if (!(options.tolerance >= 0) || !std::isfinite(options.tolerance))
    return fail(ErrorKind::kInvalidArgument, "the tolerance is {}; a number from 0 on makes sense", options.tolerance);
  Report report;
  report.tolerance = options.tolerance;
  Pairs pairs(report, options);
  MAXPORT_ASSIGN_OR_RETURN(const convert::PathKind kind_a, convert::path_kind(storage, a));
  MAXPORT_ASSIGN_OR_RETURN(const convert::PathKind kind_b, convert::path_kind(storage, b));
  const bool maxtext_a = kind_a == convert::PathKind::kCheckpoint, maxtext_b = kind_b == convert::PathKind::kCheckpoint;
  if (maxtext_a && maxtext_b)
    MAXPORT_RETURN_IF_ERROR(pair_checkpoints(storage, a, b, pairs));
  else if (!maxtext_a && !maxtext_b)
    MAXPORT_RETURN_IF_ERROR(pair_files(storage, a, b, pairs));
  else
    MAXPORT_RETURN_IF_ERROR(pair_model_with_checkpoint(storage, maxtext_a ? b : a, maxtext_a ? a : b, maxtext_b, pairs));
  MAXPORT_RETURN_IF_ERROR(pairs.run());
  if (report.tensors.empty())
    return fail(ErrorKind::kInvalidArgument, "neither {} nor {} has a tensor that could be compared", printable(a), printable(b));
  return report;
}

}  // namespace maxport::compare
