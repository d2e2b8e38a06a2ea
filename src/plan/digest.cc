#include "plan/digest.h"

#include <bit>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/digest.h"

namespace maxport::plan {
namespace {

/// Fields one after another, each of known length.
class Fields {
 public:
  void add(uint64_t value) {
    char bytes[sizeof value];
    store_le(value, reinterpret_cast<std::byte*>(bytes));
    text_.append(bytes, sizeof bytes);
  }
  void add(int64_t value) { add(static_cast<uint64_t>(value)); }
  void add(float value) { add(uint64_t{std::bit_cast<uint32_t>(value)}); }
  void add(std::string_view value) {
    add(uint64_t{value.size()});
    text_.append(value);
  }
  template <class Number>
  void add(const std::vector<Number>& values) {
    add(uint64_t{values.size()});
    for (Number value : values) add(int64_t{value});
  }
  void add(const models::Arithmetic& arithmetic) {
    add(static_cast<uint64_t>(arithmetic.kind));
    add(arithmetic.to_maxtext);
    add(arithmetic.to_huggingface);
    add(uint64_t{arithmetic.keeps_float32});
  }
  std::string digest() const { return xxh128_hex(as_bytes(text_)); }

 private:
  std::string text_;
};

}  // namespace

std::string digest(const Plan& plan) {
  Fields fields;
  fields.add(uint64_t{plan.tensors.size()});
  for (const Tensor& tensor : plan.tensors) {
    fields.add(tensor.name);
    fields.add(tensor.shape);
  }
  fields.add(uint64_t{plan.leaves.size()});
  for (const Leaf& leaf : plan.leaves) {
    fields.add(leaf.collection);
    fields.add(leaf.path);
    fields.add(leaf.shape);
    fields.add(leaf.stack_axes);
    fields.add(leaf.arithmetic);
    fields.add(uint64_t{leaf.fill.has_value()});
    fields.add(leaf.fill.value_or(0));
    fields.add(uint64_t{leaf.link_count});
  }
  fields.add(uint64_t{plan.walks.size()});
  for (const Walk& walk : plan.walks) {
    fields.add(walk.extents);
    fields.add(walk.huggingface_strides);
    fields.add(walk.maxtext_strides);
  }
  for (const Link& link : plan.links) {
    for (uint32_t index : {link.tensor, link.leaf, link.walk}) fields.add(uint64_t{index});
    fields.add(link.huggingface_offset);
    fields.add(link.maxtext_offset);
  }
  return fields.digest();
}

}  // namespace maxport::plan
