#include "compare/pairs.h"

#include <algorithm>

#include "engine/region.h"

namespace maxport::compare {

void Pairs::only_in(bool a, std::string name, TensorSide side) {
  TensorComparison out;
  out.name = std::move(name);
  out.status = a ? Status::kOnlyInA : Status::kOnlyInB;
  (a ? out.a : out.b) = std::move(side);
  report_.tensors.push_back(std::move(out));
}

size_t Pairs::entry(std::string name, TensorSide a, TensorSide b) {
  TensorComparison out;
  out.name = std::move(name);
  if (a.shape != b.shape) out.status = Status::kOtherShape;
  out.a = std::move(a);
  out.b = std::move(b);
  report_.tensors.push_back(std::move(out));
  return report_.tensors.size() - 1;
}

void Pairs::add_job(Job job, LeafPlan plan, std::string walked) {
  // Complex numbers and others have no common ground.
  std::erase_if(job.parts, [&](const Part& part) {
    const DType mine = job.primary->dtype(), theirs = part.other->dtype();
    return mine != theirs && (!is_number(mine) || !is_number(theirs));
  });
  if (job.parts.empty()) return;
  for (const Part& part : job.parts) report_.tensors[part.entry].compared = true;
  job.first_position = positions_;
  positions_ += static_cast<uint64_t>(element_count(job.primary->shape()));
  jobs_.push_back(std::move(job));
  walked_.push_back({std::move(walked), plan});
}

void Pairs::add_whole(std::string name, bool primary_is_a, const WindowReader& primary, TensorSide primary_side, const WindowReader& other,
                      TensorSide other_side, LeafPlan plan) {
  const size_t at = primary_is_a ? entry(name, std::move(primary_side), std::move(other_side)) : entry(name, std::move(other_side), std::move(primary_side));
  if (!shapes_agree(at)) return;
  Job job{&primary, primary_is_a, {{Box::whole(primary.shape()), &other, Box::whole(other.shape()), at}}};
  add_job(std::move(job), plan, std::move(name));
}

Place Pairs::locate(uint64_t position) const {
  const auto job = std::prev(std::ranges::upper_bound(jobs_, position, {}, &Job::first_position));
  const Walked& walked = walked_[static_cast<size_t>(job - jobs_.begin())];
  Place out;
  out.tensor = walked.name;
  auto rest = static_cast<int64_t>(position - job->first_position);
  for (const int64_t stride : row_major_strides(job->primary->shape())) {
    out.index.push_back(rest / stride);
    rest %= stride;
  }
  if (walked.plan.leaf == nullptr) return out;
  const Box element{out.index, Shape(out.index.size(), 1)};
  for (const plan::Link& link : walked.plan.plan->links_of(*walked.plan.leaf)) {
    engine::LinkGeometry(*walked.plan.plan, *walked.plan.leaf, link).within(element, element.shape, [&](engine::Region&& region) {
      const plan::Tensor& tensor = walked.plan.plan->tensors[link.tensor];
      out.hf_tensor = tensor.name;
      out.hf_index.clear();
      int64_t offset = region.tensor_offset;
      for (const int64_t stride : row_major_strides(tensor.shape)) {
        out.hf_index.push_back(offset / stride);
        offset %= stride;
      }
    });
    if (!out.hf_tensor.empty()) break;
  }
  return out;
}

void Pairs::judge(TensorComparison& entry) const {
  if (entry.status != Status::kEqual) return;
  if (entry.statistics.first != kNowhere) entry.first = locate(entry.statistics.first);
  if (entry.a->dtype != entry.b->dtype)
    entry.status = Status::kOtherDtype;
  else if (entry.statistics.beyond > 0)
    entry.status = Status::kDifferent;
  else if (entry.statistics.differing > 0)
    entry.status = Status::kWithinTolerance;
}

Result<> Pairs::run() {
  if (options_.started) options_.started(job_bytes(jobs_));
  std::vector<Statistics> statistics(report_.tensors.size());
  const JobOptions how{options_.tolerance, options_.threads, options_.cancelled, options_.bytes_done};
  MAXPORT_RETURN_IF_ERROR(run_jobs(jobs_, how, statistics));
  for (size_t i = 0; i < statistics.size(); ++i) {
    report_.tensors[i].statistics = statistics[i];
    judge(report_.tensors[i]);
  }
  std::ranges::stable_sort(report_.tensors, {}, &TensorComparison::name);
  return {};
}

}  // namespace maxport::compare
