#include "huggingface/side_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "storage/faulty_storage.h"
#include "storage/memory_storage.h"
#include "storage/temporary_folder.h"

namespace maxport::huggingface {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(const std::vector<SideFile>& files) {
  std::vector<std::string> out;
  for (const SideFile& file : files) out.push_back(file.name);
  return out;
}

TEST(SideFiles, AreTokenizerTemplatesAndSettingsButNeverCodeOrWeights) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
                           "generation_config.json", "chat_template.jinja", "vocab.json", "merges.txt",
                           "preprocessor_config.json", "processor_config.json", "qwen.tiktoken", "LICENSE"})
    EXPECT_TRUE(is_side_file(name)) << name;
  for (const char* name :
       {"config.json", "model.safetensors", "model.safetensors.index.json", "modeling_x.py", "pytorch_model.bin",
        "README.md", ".gitattributes", "trainer_state.json", "tokenizer.json.bak"})
    EXPECT_FALSE(is_side_file(name)) << name;
}

TEST(SideFiles, AreFoundAndCopiedWithTheirContent) {
  MemoryStorage storage;
  ASSERT_TRUE(storage.make_directories("/m/additional_chat_templates"));
  ASSERT_TRUE(storage.make_directories("/out"));
  const std::string large(2'500'000, 'v');
  ASSERT_TRUE(storage.write_text("/m/tokenizer.json", large));
  ASSERT_TRUE(storage.write_text("/m/additional_chat_templates/tool.jinja", "{{ x }}"));
  ASSERT_TRUE(storage.write_text("/m/merges.txt", ""));
  ASSERT_TRUE(storage.write_text("/m/modeling.py", "evil()"));
  const auto files = find_side_files(storage, "/m").value();
  EXPECT_THAT(names(files), ElementsAre("additional_chat_templates/tool.jinja", "merges.txt", "tokenizer.json"));
  ASSERT_TRUE(copy_side_files(storage, files, storage, "/out"));
  EXPECT_EQ(storage.read_text("/out/tokenizer.json").value(), large);
  EXPECT_EQ(storage.read_text("/out/additional_chat_templates/tool.jinja").value(), "{{ x }}");
  EXPECT_EQ(storage.read_text("/out/merges.txt").value(), "");
  EXPECT_EQ(storage.kind("/out/modeling.py").value(), std::nullopt);
}

TEST(SideFiles, MayBeLinksInsideTheRepository) {
  TemporaryFolder folder;
  const std::string snapshot = folder / "models--o--n/snapshots/rev";
  ASSERT_TRUE(local_storage().make_directories(snapshot));
  ASSERT_TRUE(local_storage().make_directories(folder / "models--o--n/blobs"));
  ASSERT_TRUE(local_storage().write_text(folder / "models--o--n/blobs/abc", "{}"));
  ASSERT_EQ(::symlink("../../blobs/abc", (snapshot + "/tokenizer.json").c_str()), 0);
  ASSERT_EQ(::symlink("tokenizer.json", (snapshot + "/vocab.json").c_str()), 0);
  const auto files = find_side_files(local_storage(), snapshot);
  ASSERT_TRUE(files) << files.error().message();
  ASSERT_TRUE(copy_side_files(local_storage(), *files, local_storage(), folder.path()));
  EXPECT_EQ(local_storage().read_text(folder / "tokenizer.json").value(), "{}");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "tokenizer.json"));
}

TEST(SideFiles, MayNotBeLinksOutOfTheRepository) {
  TemporaryFolder folder;
  const std::string model = folder / "model";
  ASSERT_TRUE(local_storage().make_directories(model));
  ASSERT_TRUE(local_storage().make_directories(folder / "model-secrets"));
  ASSERT_TRUE(local_storage().write_text(folder / "model-secrets/key", "secret"));
  for (const char* target : {"../model-secrets/key", "/etc/passwd"}) {
    std::filesystem::remove(model + "/tokenizer.json");
    ASSERT_EQ(::symlink(target, (model + "/tokenizer.json").c_str()), 0);
    const auto files = find_side_files(local_storage(), model);
    ASSERT_FALSE(files) << target;
    EXPECT_EQ(files.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(files.error().message(),
                AllOf(HasSubstr("tokenizer.json"), HasSubstr("link out of the model's folder")));
  }
}

TEST(SideFiles, RefuseDanglingLinksLoopsAndPipes) {
  TemporaryFolder folder;
  const std::string path = folder / "tokenizer.json";
  ASSERT_EQ(::symlink("nowhere", path.c_str()), 0);
  EXPECT_EQ(find_side_files(local_storage(), folder.path()).error().kind(), ErrorKind::kNotFound);
  std::filesystem::remove(path);
  ASSERT_EQ(::symlink("tokenizer.json", path.c_str()), 0);
  EXPECT_FALSE(find_side_files(local_storage(), folder.path()));
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(find_side_files(local_storage(), folder.path()));
}

TEST(SideFiles, ReportAFullDiskWithTheFile) {
  MemoryStorage memory;
  ASSERT_TRUE(memory.make_directories("/m"));
  ASSERT_TRUE(memory.make_directories("/out"));
  ASSERT_TRUE(memory.write_text("/m/tokenizer.json", "{}"));
  FaultyStorage full(memory);
  full.add({.operation = Operation::kWrite, .error_number = ENOSPC});
  const auto copied = copy_side_files(memory, find_side_files(memory, "/m").value(), full, "/out");
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().kind(), ErrorKind::kResourceLimit);
  EXPECT_THAT(copied.error().message(), HasSubstr("copying tokenizer.json"));
}

}  // namespace
}  // namespace maxport::huggingface
