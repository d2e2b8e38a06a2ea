// The journal of an unfinished conversion: what it is a conversion of, and which segments are durable.
//
// A text file of lines, each "<CRC-32C of the rest, 8 hex digits> <JSON>\n". The first line is the identity (plan,
// sources, options), each further one a finished segment. A line that was cut by a crash fails its CRC and ends the
// journal; the segment it spoke of is simply written again. The file lies in the checkpoint's temporary folder and goes
// when the checkpoint is published.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/pipeline.h"
#include "storage/storage.h"

namespace maxport::convert {

/// What must be the same for a second run to continue the first. Members are compared one by one, so that a message can
/// name those that differ.
using Identity = Json;

class Journal {
 public:
  /// Starts a new journal, replacing whatever is there.
  static Result<std::unique_ptr<Journal>> create(Storage& storage, const std::string& path, const Identity& identity,
                                                 bool sync);
  /// Continues one. kInvalidArgument lists the members in which `identity` differs from the recorded one; kCorruptData
  /// when the first line is unreadable.
  static Result<std::unique_ptr<Journal>> resume(Storage& storage, const std::string& path, const Identity& identity,
                                                 bool sync);

  /// Segments that the journal held when it was opened.
  std::vector<engine::SegmentResult> take_finished() { return std::move(finished_); }

  /// Records a segment that is durable. Safe from several threads.
  Result<> append(const engine::SegmentResult& segment);

 private:
  Journal(std::unique_ptr<WritableFile> file, uint64_t size, bool sync)
      : file_(std::move(file)), size_(size), sync_(sync) {}
  Result<> append_line(const Json& value);

  std::mutex mutex_;
  std::unique_ptr<WritableFile> file_;
  uint64_t size_;
  bool sync_;
  std::vector<engine::SegmentResult> finished_;
};

}  // namespace maxport::convert
