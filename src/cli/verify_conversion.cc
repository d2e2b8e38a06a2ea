#include "cli/verify_conversion.h"

#include "verify/verify.h"

namespace maxport::cli {
namespace {

Result<verify::Report> check_digests(const std::string& path, int threads) {
  verify::Options options;
  options.threads = threads;
  options.cancelled = stop_requested;
  MAXPORT_ASSIGN_OR_RETURN(verify::Report report, verify::verify_checkpoint(local_storage(), path, options));
  if (report.good()) return report;
  std::string text;
  for (const verify::Damage& damage : report.damages)
    text += fmt::format("\n  {}{}{}", printable(damage.leaf), damage.leaf.empty() ? "" : ": ", printable(damage.text));
  return fail(ErrorKind::kCorruptData, "{} is damaged:{}", printable(path), text);
}

}  // namespace

Result<> verify_written_checkpoint(Console& console, const convert::ToMaxtextReport& report, int threads) {
  MAXPORT_ASSIGN_OR_RETURN(const verify::Report found, check_digests(report.step_directory, threads));
  if (!found.recorded) return fail(ErrorKind::kCorruptData, "{} has no record of its digests", printable(report.step_directory));
  console.info("Verified: {} leaves, {} chunks read back, digests equal", found.leaves, found.chunks);
  return {};
}

Result<> verify_written_model(Console& console, const convert::CheckpointSource& source, const convert::ToHuggingface& conversion, int threads) {
  MAXPORT_ASSIGN_OR_RETURN(const verify::Report found, check_digests(source.checkpoint().path().item_directory, threads));
  if (!found.recorded) console.warn("the checkpoint has no digests; only the model folder is verified");
  MAXPORT_RETURN_IF_ERROR(conversion.check_output());
  console.info("Verified: {}{} tensors read back, equal to a second conversion", found.recorded ? "digests of the checkpoint equal, " : "",
               conversion.tensors().size());
  return {};
}

}  // namespace maxport::cli
