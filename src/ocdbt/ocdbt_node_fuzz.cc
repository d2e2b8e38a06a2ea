// Any bytes as a B+tree node, framed and bare: no crash, and what is accepted encodes to something that decodes.
#include "ocdbt/btree_node.h"
#include "ocdbt/frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace maxport;
  using namespace maxport::ocdbt;
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  Bytes keep;
  if (const auto body = decode_frame(bytes, kBtreeNodeMagic, "the node", keep)) (void)decode_btree_node(*body);
  const auto node = decode_btree_node(bytes);
  if (!node) return 0;
  const Bytes again = node->height() == 0 ? encode_leaf_node(node->leaves(), node->files(), 0)
                                          : encode_interior_node(node->height(), node->children(), node->files(), 0);
  const auto reread = decode_btree_node(again);
  MAXPORT_CHECK(reread.has_value() && reread->first_key() == node->first_key() && reread->files() == node->files());
  return 0;
}
