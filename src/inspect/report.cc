#include "inspect/report.h"

#include <algorithm>
#include <array>

namespace maxport::inspect {
namespace {

std::string type_text(const Tensor& tensor) { return tensor.shape ? printable(tensor.type) + shape_text(*tensor.shape) : printable(tensor.type); }

/// The last column: chunks of a checkpoint, the file of a model, what is wrong.
std::string place_text(const Tensor& tensor) {
  if (!tensor.problem.empty()) return "DAMAGED: " + printable(tensor.problem);
  if (!tensor.value.empty()) return "= " + printable(tensor.value);
  if (tensor.chunks) {
    std::string out = fmt::format("{} chunk{} of {}", tensor.chunks->count, tensor.chunks->count == 1 ? "" : "s", shape_text(tensor.chunks->shape));
    if (tensor.chunks->stored != tensor.chunks->count) out += fmt::format(" ({} stored)", tensor.chunks->stored);
    return out + "  " + tensor.chunks->codecs;
  }
  return printable(tensor.place);
}

std::string value_text(const OrderedJson& value) { return printable(value.is_string() ? value.get<std::string>() : value.dump()); }

void add_head(const Inspection& in, std::string& out) {
  const auto line = [&](std::string_view name, std::string_view text) {
    if (!text.empty()) out += fmt::format("{:<24} {}\n", name, printable(text));
  };
  line("kind", in.kind);
  line("path", in.path);
  line("family", in.family.empty() ? "" : fmt::format("{} ({})", in.family, in.family_title));
  line("layout", in.layout);
  line("storage", in.storage);
  for (const auto& [name, text] : in.facts) line(printable(name), text);
  for (const std::string& note : in.notes) line("note", note);
}

}  // namespace

std::string ratio_text(uint64_t bytes, uint64_t stored) {
  return stored == 0 ? "-" : fmt::format("{:.2f}x", static_cast<double>(bytes) / static_cast<double>(stored));
}

std::string table(const Inspection& in) {
  std::string out;
  add_head(in, out);
  if (!in.roles.empty()) {
    out += fmt::format("\nconfiguration, from {}\n", printable(in.config_source));
    for (const Role& role : in.roles) out += fmt::format("  {:<32} {:<24} {}\n", role.name, value_text(role.value), printable(role.source));
  }
  size_t name = 4, type = 4;
  for (const Tensor& tensor : in.tensors) {
    name = std::max(name, printable(tensor.name).size());
    type = std::max(type, type_text(tensor).size());
  }
  name = std::min<size_t>(name, 100);
  // Models are stored as they are; what compression did concerns checkpoints alone.
  const bool chunked = std::ranges::any_of(in.tensors, [](const Tensor& tensor) { return tensor.chunks.has_value(); });
  const auto line = [&](std::string_view first, std::string_view second, std::string_view bytes, std::string_view stored, std::string_view ratio,
                        std::string_view place) {
    std::string row = fmt::format("{:<{}}  {:<{}}  {:>12}  ", first, name, second, type, bytes);
    if (chunked) row += fmt::format("{:>12}  {:>6}  ", stored, ratio);
    row += place;
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  };
  out += "\n";
  line("name", "type", "bytes", "stored", "ratio", chunked ? "chunks, codecs" : "file");
  size_t arrays = 0;
  for (const Tensor& tensor : in.tensors) {
    const bool counted = tensor.shape.has_value();
    arrays += counted ? 1 : 0;
    line(printable(tensor.name), type_text(tensor), counted ? std::to_string(tensor.bytes) : "", counted ? std::to_string(tensor.stored) : "",
         counted ? ratio_text(tensor.bytes, tensor.stored) : "", place_text(tensor));
  }
  return out + fmt::format("\n{} tensors, {} bytes, stored as {} ({})\n", arrays, in.bytes(), in.stored(), ratio_text(in.bytes(), in.stored()));
}

OrderedJson to_json(const Inspection& in) {
  OrderedJson roles = OrderedJson::array(), tensors = OrderedJson::array();
  for (const Role& role : in.roles) roles.push_back({{"role", role.name}, {"value", role.value}, {"source", role.source}});
  for (const Tensor& tensor : in.tensors) {
    OrderedJson row{{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape ? OrderedJson(*tensor.shape) : OrderedJson(nullptr)},
                    {"bytes", tensor.bytes}, {"stored", tensor.stored}};
    if (!tensor.value_type.empty()) row["value_type"] = tensor.value_type;
    if (tensor.chunks)
      row["chunks"] = {{"shape", tensor.chunks->shape}, {"count", tensor.chunks->count}, {"stored", tensor.chunks->stored}, {"codecs", tensor.chunks->codecs}};
    if (!tensor.place.empty()) row["file"] = tensor.place;
    if (!tensor.value.empty()) row["value"] = tensor.value;
    if (!tensor.problem.empty()) row["problem"] = tensor.problem;
    tensors.push_back(std::move(row));
  }
  OrderedJson out{{"path", in.path}, {"kind", in.kind}, {"family", in.family.empty() ? OrderedJson(nullptr) : OrderedJson(in.family)},
                  {"layout", in.layout.empty() ? OrderedJson(nullptr) : OrderedJson(in.layout)}, {"storage", in.storage}, {"facts", in.facts}};
  out["config"] = {{"source", in.config_source}, {"roles", roles}};
  out["bytes"] = in.bytes();
  out["stored"] = in.stored();
  out["notes"] = in.notes;
  out["tensors"] = std::move(tensors);
  return out;
}

}  // namespace maxport::inspect
