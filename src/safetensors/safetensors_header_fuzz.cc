// Feeds raw bytes to the reader. What it accepts must be readable: every tensor lies inside the file, the tensors
// cover the data without gap or overlap, and every name is found again.
#include "safetensors/header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace maxport;
  using namespace maxport::safetensors;
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  if (size < 8) return 0;
  const uint64_t length = load_le<uint64_t>(bytes.data());
  if (length > size - 8) return 0;
  const ByteSpan json = bytes.subspan(8, static_cast<size_t>(length));
  for (const MetadataPolicy policy : {MetadataPolicy::kStrict, MetadataPolicy::kTolerate}) {
    const auto header = parse_header(json, size, "input", policy);
    if (!header) {
      MAXPORT_CHECK(!header.error().message().empty());
      continue;
    }
    uint64_t at = 8 + length;
    for (const TensorInfo& tensor : header->tensors) {
      MAXPORT_CHECK(tensor.begin == at && tensor.end >= tensor.begin);
      MAXPORT_CHECK(header->find(tensor.name) == &tensor);
      at = tensor.end;
    }
    MAXPORT_CHECK(at == size);
  }
  return 0;
}
