// Which tensors are compared with which: one of the pairings fills this, then it runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compare/compare.h"
#include "compare/jobs.h"
#include "plan/plan.h"

namespace maxport::compare {

/// The links of a leaf, which tell the Hugging Face tensor that an element belongs to. May be empty.
struct LeafPlan {
  const plan::Plan* plan = nullptr;
  const plan::Leaf* leaf = nullptr;
};

class Pairs {
 public:
  Pairs(Report& report, const Options& options) : report_(report), options_(options) {}

  Report& report() { return report_; }
  const Options& options() const { return options_; }

  /// Keeps an object until the comparison is done.
  template <class T>
  const T& keep(std::unique_ptr<T> object) {
    const T& out = *object;
    kept_.push_back(std::shared_ptr<const void>(std::move(object)));
    return out;
  }

  void note(std::string text) { report_.notes.push_back(std::move(text)); }
  void only_in(bool a, std::string name, TensorSide side);

  /// An entry of the report; the parts of jobs name it. Where shapes differ it is complete and gets no parts.
  size_t entry(std::string name, TensorSide a, TensorSide b);
  bool shapes_agree(size_t entry) const { return report_.tensors[entry].status != Status::kOtherShape; }
  /// Fills in positions; `walked` names the primary in messages. A job without parts is left out.
  void add_job(Job job, LeafPlan plan, std::string walked);
  /// Two tensors of one name, as whole. The sides tell what the entry says about them, e.g. the type that a conversion
  /// gives while the reader derives another.
  void add_whole(std::string name, bool primary_is_a, const WindowReader& primary, TensorSide primary_side, const WindowReader& other,
                 TensorSide other_side, LeafPlan plan = {});

  /// Reads everything and completes the report.
  Result<> run();

 private:
  struct Walked {
    std::string name;
    LeafPlan plan;
  };
  void judge(TensorComparison& entry) const;
  Place locate(uint64_t position) const;

  Report& report_;
  const Options& options_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<Job> jobs_;
  std::vector<Walked> walked_;  // by job
  uint64_t positions_ = 0;
};

inline TensorSide side_of(const WindowReader& reader) { return {reader.dtype(), reader.shape()}; }

/// The pairings. Each opens what it needs, names both sides in the report and fills the pairs.
Result<> pair_files(Storage& storage, const std::string& a, const std::string& b, Pairs& pairs);
Result<> pair_checkpoints(Storage& storage, const std::string& a, const std::string& b, Pairs& pairs);
/// `model_is_a`: the Hugging Face folder is side A.
Result<> pair_model_with_checkpoint(Storage& storage, const std::string& model, const std::string& checkpoint, bool model_is_a, Pairs& pairs);

}  // namespace maxport::compare
