// For tests: a small model folder that a test builds and then spoils.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "safetensors/writer.h"
#include "storage/storage.h"

namespace maxport::huggingface {

/// Writes a safetensors file whose tensors hold `fill` in every byte.
inline void write_tensors(Storage& storage, const std::string& path, const std::vector<safetensors::TensorSpec>& specs,
                          char fill = 'x') {
  auto layout = safetensors::layout_file(specs);
  ASSERT_TRUE(layout) << layout.error().message();
  const std::string data(layout->file_size - layout->header.size(), fill);
  ASSERT_TRUE(storage.write_text(path, layout->header + data));
}

/// Three shards with two tensors each, an index and a config.
class TestModel {
 public:
  TestModel(Storage& storage, std::string folder) : storage_(storage), folder_(std::move(folder)) {
    EXPECT_TRUE(storage.make_directories(folder_));
    write_config({{"model_type", "llama"},
                  {"hidden_size", 4},
                  {"num_hidden_layers", 2},
                  {"num_attention_heads", 2},
                  {"vocab_size", 8}});
  }

  std::string path(std::string_view name) const { return join_path(folder_, name); }
  static std::string shard(int n) { return fmt::format("model-{:05}-of-00003.safetensors", n); }

  void write_config(const Json& config) { EXPECT_TRUE(storage_.write_text(path("config.json"), config.dump())); }

  void write_shards() {
    for (int n = 1; n <= 3; ++n) {
      const std::vector<safetensors::TensorSpec> specs = {{fmt::format("layers.{}.a", n), DType::kBfloat16, {2, 4}},
                                                          {fmt::format("layers.{}.b", n), DType::kBfloat16, {4}}};
      write_tensors(storage_, path(shard(n)), specs, static_cast<char>('0' + n));
      for (const auto& spec : specs) weight_map[spec.name] = shard(n);
    }
    write_index();
  }

  void write_single() { write_tensors(storage_, path("model.safetensors"), {{"w", DType::kFloat32, {4}}}, 's'); }

  void write_index() {
    const Json index = {{"metadata", {{"total_size", 72}}}, {"weight_map", weight_map}};
    EXPECT_TRUE(storage_.write_text(path("model.safetensors.index.json"), index.dump()));
  }

  std::map<std::string, std::string> weight_map;

 private:
  Storage& storage_;
  std::string folder_;
};

}  // namespace maxport::huggingface
