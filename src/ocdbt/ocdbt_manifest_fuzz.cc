// Any bytes as a manifest, framed and bare: no crash, and what is accepted encodes to something that decodes the same.
#include "ocdbt/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace maxport;
  using namespace maxport::ocdbt;
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  (void)decode_manifest(bytes);
  (void)decode_version_node(bytes);
  if (const auto manifest = decode_manifest_body(bytes))
    MAXPORT_CHECK(decode_manifest_body(encode_manifest_body(*manifest)) == *manifest);
  return 0;
}
