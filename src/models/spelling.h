// Where published files spell the prefixes of tensor names differently: the same decoder lies under "model.",
// "language_model.model.", "model.language_model." or no prefix, towers with or without "model.".
//
// A family writes one spelling. Before it is asked for its map, the spelling of the source is found, and the source is
// shown to it as if it had the family's; afterwards the map is respelt to what the files say.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/family.h"

namespace maxport::models {

/// Prefixes: the family's own, and the source's in its place. Longest first.
using Spelling = std::vector<std::pair<std::string, std::string>>;

/// kInvalidArgument when one file mixes two spellings of the decoder.
Result<Spelling> find_spelling(const Family& family, const ModelContext& context);

/// Names of the map replaced by those of the source, with a note that says so.
void respell(const Spelling& spelling, ParameterMap& map);

/// A source whose names are shown in the family's spelling.
class RespeltNames final : public SourceNames {
 public:
  RespeltNames(const SourceNames& source, const Spelling& spelling) : source_(source), spelling_(spelling) {}
  bool contains(std::string_view name) const override;
  std::optional<Shape> shape(std::string_view name) const override;
  bool contains_prefix(std::string_view prefix) const override;

 private:
  const SourceNames& source_;
  const Spelling& spelling_;
};

}  // namespace maxport::models
