// What the tests of this room share: a golden model, converted in memory.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "convert/model_source.h"
#include "convert/to_maxtext.h"
#include "storage/memory_storage.h"

namespace maxport::convert::testing {

inline const std::string kLlama = MAXPORT_TEST_DATA "/goldens/llama3.1-8b/hf";

inline maxtext::Settings settings(std::vector<maxtext::Override> overrides = {{"scan_layers", "true"}}) {
  auto out = maxtext::Settings::load(local_storage(), {{}, std::move(overrides), {}});
  EXPECT_TRUE(out) << out.error().message();
  return std::move(*out);
}

inline std::unique_ptr<ModelSource> open_model(const std::string& folder = kLlama,
                                               std::vector<maxtext::Override> overrides = {{"scan_layers", "true"}}) {
  auto source = ModelSource::open(local_storage(), {folder}, settings(std::move(overrides)));
  EXPECT_TRUE(source) << source.error().message();
  return std::move(*source);
}

inline ToMaxtextOptions options() {
  ToMaxtextOptions out;
  out.base_output_directory = "out";
  out.timestamp_nsecs = 1'700'000'000'000'000'000;
  out.segment_bytes = 64 << 10;  // several segments, small as the model is
  return out;
}

inline Result<ToMaxtextReport> convert(Storage& storage, const ModelSource& source, ToMaxtextOptions options) {
  auto conversion = ToMaxtext::prepare(storage, source, std::move(options));
  if (!conversion) return std::unexpected(conversion.error());
  return (*conversion)->run();
}

/// Every file below `folder` by its path.
inline std::map<std::string, std::string> files(Storage& storage, const std::string& folder) {
  std::map<std::string, std::string> out;
  auto entries = storage.list(folder);
  if (!entries) return out;
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = join_path(folder, entry.name);
    if (entry.kind == EntryKind::kDirectory) out.merge(files(storage, path));
    else out[path] = *storage.read_text(path);
  }
  return out;
}

}  // namespace maxport::convert::testing
