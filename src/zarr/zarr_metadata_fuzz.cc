// Any bytes as metadata of both versions: no crash, and what is accepted is written as something that says the same.
#include "zarr/metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace maxport;
  using namespace maxport::zarr;
  const std::string_view text = as_text(std::as_bytes(std::span(data, size)));
  for (const Version version : {Version::kV2, Version::kV3}) {
    const auto spec = parse_metadata(version, text, "the metadata");
    if (!spec) continue;
    MAXPORT_CHECK(check_array_spec(*spec, ErrorKind::kInternal).has_value());
    const std::string written = metadata_text(*spec);
    const auto again = parse_metadata(version, written, "what was written");
    MAXPORT_CHECK(again.has_value() && metadata_text(*again) == written);
  }
  return 0;
}
