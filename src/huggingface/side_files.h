// The small files that go with a model's weights: tokenizer, chat templates, generation and preprocessor settings.
//
// A file may be a link, as in the hub's cache, but only to something inside the same repository; a link that leads out
// is refused, so that a hostile repository cannot make a conversion publish a file of the machine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "storage/storage.h"

namespace maxport::huggingface {

struct SideFile {
  std::string name;  ///< relative to the model's folder
  std::string path;
  uint64_t size = 0;
};

/// True for the names that are copied, e.g. "tokenizer.json", "chat_template.jinja". Never for code.
bool is_side_file(std::string_view name);

/// All side files of a model's folder, sorted by name. Fails with kInvalidArgument for a link that leads out of the
/// repository and kResourceLimit for a file too large to be one.
Result<std::vector<SideFile>> find_side_files(Storage& storage, const std::string& folder);

/// Copies them and makes them durable.
Result<> copy_side_files(Storage& from, std::span<const SideFile> files, Storage& to, const std::string& folder);

}  // namespace maxport::huggingface
