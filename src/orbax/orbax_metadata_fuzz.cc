// Any bytes as each of Orbax's JSON files: no crash, and what is accepted is written as something that says the same.
#include "orbax/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace maxport;
  using namespace maxport::orbax;
  const std::string_view text = as_text(std::as_bytes(std::span(data, size)));
  if (const auto tree = parse_tree_metadata(text, "the tree")) {
    const auto again = parse_tree_metadata(tree_metadata_text(*tree), "the tree again");
    MAXPORT_CHECK(again.has_value() && again->leaves.size() == tree->leaves.size());
  }
  if (const auto step = parse_step_metadata(text, "the step")) {
    const std::string written = step_metadata_text(*step);
    const auto again = parse_step_metadata(written, "the step again");
    MAXPORT_CHECK(again.has_value() && step_metadata_text(*again) == written);
  }
  if (const auto strings = parse_strings(text, "the strings")) {
    const auto again = parse_strings(strings_text(*strings), "the strings again");
    MAXPORT_CHECK(again.has_value() && *again == *strings);
  }
  if (const auto arrays = parse_array_metadata(text, "the arrays"))
    MAXPORT_CHECK(parse_array_metadata(array_metadata_text(*arrays), "the arrays again").has_value());
  (void)parse_sharding(text, "the sharding");
  return 0;
}
