// Is a checkpoint whole and unchanged, and is it what its source means?
//
// Everything is read: each chunk is decoded (which checks its checksum), compared with the digests that maxport recorded
// when it made the checkpoint, and, with a source, derived again from the Hugging Face model element by element. What
// stock Orbax could not load is damage too.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/model_source.h"
#include "orbax/checkpoint.h"

namespace maxport::verify {

struct Damage {
  std::string leaf;  ///< parameter name; empty when it concerns the checkpoint as a whole
  std::string text;  ///< what, where (file, offset, chunk), and what was expected
};

struct Report {
  std::vector<Damage> damages;
  std::vector<std::string> warnings;
  bool recorded = false;  ///< there were digests to compare with
  bool sourced = false;   ///< every element was derived again
  uint64_t leaves = 0, chunks = 0, bytes = 0;

  bool good() const { return damages.empty(); }
};

struct Options {
  int threads = 1;
  /// The Hugging Face model that the checkpoint should hold; null to leave that out.
  const convert::ModelSource* source = nullptr;
  /// What the source's elements were converted to; nothing: what the record says, or the leaf's own type.
  std::optional<DType> save_dtype = {};
  std::function<bool()> cancelled = {};
  std::atomic<uint64_t>* bytes_done = nullptr;
};

/// Reads the checkpoint at `path` (a step, its items, or a folder of steps). Fails only when it cannot be opened at all;
/// damage is part of the report.
Result<Report> verify_checkpoint(Storage& storage, const std::string& path, const Options& options);

}  // namespace maxport::verify
