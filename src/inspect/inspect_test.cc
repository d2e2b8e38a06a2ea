#include "inspect/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "convert/testing.h"
#include "inspect/report.h"

namespace maxport::inspect {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Inspection run(Storage& storage, const std::string& path) {
  auto out = inspect(storage, path);
  EXPECT_TRUE(out) << out.error().message();
  return out ? std::move(*out) : Inspection{};
}

const OrderedJson* role(const Inspection& in, std::string_view name) {
  const auto found = std::ranges::find(in.roles, name, &Role::name);
  return found == in.roles.end() ? nullptr : &found->value;
}

TEST(Inspect, ListsTheTensorsFilesAndRolesOfAModel) {
  const Inspection in = run(local_storage(), convert::testing::kLlama);
  EXPECT_EQ(in.kind, "Hugging Face model");
  EXPECT_EQ(in.family, "llama");
  const auto model = convert::testing::open_model();
  EXPECT_EQ(in.tensors.size(), model->directory().tensors().size());
  ASSERT_NE(role(in, "num_hidden_layers"), nullptr);
  EXPECT_EQ(*role(in, "num_hidden_layers"), 3);
  EXPECT_EQ(in.bytes(), in.stored());
}

TEST(Inspect, SaysWhatACheckpointHoldsAndHowItIsStored) {
  MemoryStorage disk;
  const auto source = convert::testing::open_model();
  ASSERT_TRUE(convert::testing::convert(disk, *source, convert::testing::options()));
  for (const char* path : {"out", "out/0", "out/0/items"}) {
    const Inspection in = run(disk, path);
    EXPECT_EQ(in.path, "out/0/items");
    EXPECT_EQ(in.kind, "Orbax checkpoint");
    EXPECT_EQ(in.family, "llama");
    EXPECT_EQ(in.layout, "Linen, scanned");
    EXPECT_EQ(in.storage, "OCDBT, Zarr v3");
    EXPECT_THAT(in.config_source, HasSubstr("maxport.json"));
    uint64_t arrays = 0;
    for (const Tensor& tensor : in.tensors) {
      EXPECT_TRUE(tensor.problem.empty()) << tensor.problem;
      if (!tensor.shape) continue;
      ++arrays;
      EXPECT_EQ(tensor.chunks->stored, tensor.chunks->count) << tensor.name;
      EXPECT_GT(tensor.stored, 0u) << tensor.name;
    }
    EXPECT_EQ(arrays, source->plan().leaves.size() + 1) << "and the step";
  }
}

TEST(Inspect, ShowsDamagedLeavesBesideTheOthers) {
  MemoryStorage disk;
  const auto source = convert::testing::open_model();
  auto options = convert::testing::options();
  options.use_ocdbt = false;
  ASSERT_TRUE(convert::testing::convert(disk, *source, options));
  ASSERT_TRUE(disk.write_text("out/0/items/params.params.decoder.decoder_norm.scale/zarr.json", "{"));
  const Inspection in = run(disk, "out");
  const auto damaged = std::ranges::find(in.tensors, "params.params.decoder.decoder_norm.scale", &Tensor::name);
  ASSERT_NE(damaged, in.tensors.end());
  EXPECT_FALSE(damaged->problem.empty());
  EXPECT_THAT(table(in), HasSubstr("DAMAGED"));
}

TEST(Inspect, PrintsHostileNamesSafely) {
  Inspection in;
  in.kind = "safetensors file";
  Tensor tensor;
  tensor.name = "a\x1b[31m\nb";
  tensor.type = "float32";
  tensor.shape = Shape{1};
  in.tensors.push_back(tensor);
  EXPECT_THAT(table(in), Not(HasSubstr("\x1b")));
  EXPECT_THAT(table(in), Not(HasSubstr("\nb")));
}

TEST(Inspect, SaysWhatIsNotThere) {
  MemoryStorage disk;
  auto out = inspect(disk, "nowhere");
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().kind(), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace maxport::inspect
