#include "cli/verify_conversion.h"

#include "forward/comparison.h"
#include "forward/matmul.h"
#include "forward/open.h"
#include "verify/verify.h"

namespace maxport::cli {
namespace {

/// Of a token's distribution, in nats; the limit of MaxText's own checker.
constexpr double kMaxDivergence = 0.015;

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

/// A few ids that every vocabulary has.
forward::Batch short_batch() {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 16; ++i) ids.push_back((7 * i + 3) % 97);
  forward::Batch batch;
  batch.append(ids);
  return batch;
}

Result<forward::Matrix> logits_of(const std::string& path, const forward::Batch& batch) {
  MAXPORT_ASSIGN_OR_RETURN(const auto decoder, forward::open_model(local_storage(), {.path = path}));
  return with_context(forward::run(*decoder, batch, [](int64_t) { return !stop_requested(); }), printable(path));
}

Result<> compare_written_logits(Console& console, const std::string& step, const std::string& source_folder, int threads) {
  forward::set_multiply_threads(threads);
  const forward::Batch batch = short_batch();
  const auto reference = logits_of(source_folder, batch), written = logits_of(step, batch);
  for (const auto* logits : {&reference, &written}) {
    if (*logits) continue;
    if (logits->error().kind() != ErrorKind::kUnsupported) return std::unexpected(logits->error());
    console.warn("the logits were not compared: {}", logits->error().message());
    return {};
  }
  MAXPORT_ASSIGN_OR_RETURN(const forward::Comparison found, forward::compare_logits(*written, *reference));
  if (!found.within(kMaxDivergence))
    return fail(ErrorKind::kCorruptData,
                "{} does not say what {} says: of {} tokens {} have the same next one, and the divergence is {:.3g} where {} is "
                "the limit; 'maxport logits' tells more",
                printable(step), printable(source_folder), found.tokens, found.argmax_agreements, found.max_kl, kMaxDivergence);
  console.info("Verified: logits of {} tokens agree with the source's, cosine {:.7f}, divergence {:.1e} at most", found.tokens,
               found.cosine, found.max_kl);
  return {};
}

}  // namespace

Result<> verify_written_checkpoint(Console& console, const convert::ToMaxtextReport& report, const std::string& source_folder,
                                   int threads) {
  MAXPORT_ASSIGN_OR_RETURN(const verify::Report found, check_digests(report.step_directory, threads));
  if (!found.recorded) return fail(ErrorKind::kCorruptData, "{} has no record of its digests", printable(report.step_directory));
  console.info("Verified: {} leaves, {} chunks read back, digests equal", found.leaves, found.chunks);
  return compare_written_logits(console, report.step_directory, source_folder, threads);
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
