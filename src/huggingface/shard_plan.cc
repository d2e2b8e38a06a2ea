#include "huggingface/shard_plan.h"

#include <array>
#include <charconv>

#include "base/checked.h"

namespace maxport::huggingface {
namespace {

/// What a header holds besides its entries: braces, metadata, padding.
constexpr uint64_t kHeaderRest = 256;

class Splitter {
 public:
  Splitter(uint64_t max_shard_bytes, uint64_t max_header_bytes)
      : max_shard_bytes_(max_shard_bytes), max_header_bytes_(max_header_bytes) {}

  void add(size_t tensor, uint64_t data_bytes, uint64_t header_bytes) {
    if (data_bytes > max_shard_bytes_) {
      files_.push_back({{}, {tensor}, data_bytes});
      return;
    }
    if (!current_.tensors.empty() &&
        (current_.data_bytes + data_bytes > max_shard_bytes_ || header_bytes_ + header_bytes > max_header_bytes_))
      close();
    current_.tensors.push_back(tensor);
    current_.data_bytes += data_bytes;
    header_bytes_ += header_bytes;
  }

  std::vector<ShardFile> finish() {
    if (!current_.tensors.empty()) close();
    return std::move(files_);
  }

 private:
  void close() {
    files_.push_back(std::move(current_));
    current_ = {};
    header_bytes_ = kHeaderRest;
  }

  uint64_t max_shard_bytes_, max_header_bytes_;
  std::vector<ShardFile> files_;
  ShardFile current_;
  uint64_t header_bytes_ = kHeaderRest;
};

void name_files(ShardPlan& plan, std::string_view stem) {
  for (size_t file = 0; file < plan.files.size(); ++file) {
    ShardFile& shard = plan.files[file];
    shard.name = plan.sharded() ? fmt::format("{}-{:05}-of-{:05}.safetensors", stem, file + 1, plan.files.size())
                                : fmt::format("{}.safetensors", stem);
    for (size_t index = 0; index < shard.tensors.size(); ++index) plan.places[shard.tensors[index]] = {file, index};
  }
}

}  // namespace

Result<uint64_t> parse_shard_size(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      std::pair{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}};
  const auto refuse = [&] {
    return fail(ErrorKind::kInvalidArgument,
                "shard size \"{}\": expected a positive number and TB, GB, MB or KB, such as 5GB, or a number of bytes",
                printable(text));
  };
  std::string_view digits = text;
  double factor = 1;
  if (text.size() >= 2) {
    std::string unit(text.substr(text.size() - 2));
    for (char& c : unit)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    for (const auto& [name, value] : kUnits)
      if (unit == name) factor = value, digits.remove_suffix(2);
  }
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  double value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != digits.data() + digits.size()) return refuse();
  const double bytes = value * factor;
  if (!(bytes >= 1) || bytes > 1e18) return refuse();
  return static_cast<uint64_t>(bytes);
}

Result<ShardPlan> plan_shards(std::span<const safetensors::TensorSpec> tensors, uint64_t max_shard_bytes,
                              std::string_view stem, uint64_t max_header_bytes) {
  if (tensors.empty()) return fail(ErrorKind::kInvalidArgument, "a model without tensors cannot be written");
  ShardPlan plan;
  plan.places.resize(tensors.size());
  Splitter splitter(max_shard_bytes, max_header_bytes);
  for (size_t i = 0; i < tensors.size(); ++i) {
    auto size = with_context(safetensors::tensor_byte_size(tensors[i].dtype, tensors[i].shape),
                             fmt::format("tensor {}", safetensors::quoted_name(tensors[i].name)));
    if (!size) return std::unexpected(std::move(size).error());
    const auto total = checked_add(plan.total_size, *size);
    if (!total) return fail(ErrorKind::kInvalidArgument, "the size of all tensors overflows");
    plan.total_size = *total;
    plan.total_parameters += static_cast<uint64_t>(element_count(tensors[i].shape));
    splitter.add(i, *size, safetensors::header_bytes_of(tensors[i]));
  }
  plan.files = splitter.finish();
  name_files(plan, stem);
  return plan;
}

Json index_json(const ShardPlan& plan, std::span<const safetensors::TensorSpec> tensors) {
  Json map = Json::object();
  for (size_t i = 0; i < tensors.size(); ++i) map[tensors[i].name] = plan.files[plan.places[i].file].name;
  return {{"metadata", {{"total_parameters", plan.total_parameters}, {"total_size", plan.total_size}}},
          {"weight_map", std::move(map)}};
}

std::string file_text(const Json& json) { return json.dump(2, ' ', true) + "\n"; }

}  // namespace maxport::huggingface
