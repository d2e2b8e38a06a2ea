#include "safetensors/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "storage/faulty_storage.h"
#include "storage/local_storage.h"
#include "storage/memory_storage.h"
#include "storage/temporary_folder.h"

namespace maxport::safetensors {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

constexpr std::string_view kTwoTensors =
    R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[3,7]}})";

std::string raw_file(std::string_view header, std::string_view data, uint64_t announced) {
  std::string file(8, '\0');
  store_le(announced, reinterpret_cast<std::byte*>(file.data()));
  return file.append(header).append(data);
}
std::string raw_file(std::string_view header, std::string_view data = {}) {
  return raw_file(header, data, header.size());
}

Result<std::unique_ptr<File>> open_bytes(std::string_view bytes, MemoryStorage& storage) {
  EXPECT_TRUE(storage.write_text("/model.safetensors", bytes));
  return File::open(storage, "/model.safetensors");
}

struct Refused {
  std::string_view label;
  std::string bytes;
  ErrorKind kind;
  std::string_view message;
};

class RefusesFile : public testing::TestWithParam<Refused> {};

TEST_P(RefusesFile, AndSaysWhatItIs) {
  MemoryStorage storage;
  auto file = open_bytes(GetParam().bytes, storage);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr(GetParam().message));
  EXPECT_THAT(file.error().message(), HasSubstr("/model.safetensors"));
  EXPECT_EQ(file.error().kind(), GetParam().kind);
}

const auto label_of = [](const auto& row) { return std::string(row.param.label); };

INSTANTIATE_TEST_SUITE_P(
    LengthField, RefusesFile,
    testing::Values(
        Refused{"empty", "", ErrorKind::kCorruptData, "too small for a safetensors file: 0 bytes"},
        Refused{"seven_bytes", "1234567", ErrorKind::kCorruptData, "too small for a safetensors file: 7 bytes"},
        Refused{"length_zero", std::string(8, '\0'), ErrorKind::kCorruptData, "header of 0 bytes"},
        Refused{"length_zero_with_data", std::string(64, '\0'), ErrorKind::kCorruptData, "header of 0 bytes"},
        Refused{"longer_than_file", raw_file("{}", "", 3), ErrorKind::kCorruptData,
                "header of 3 bytes announced, so expected at least 11 bytes, file has 10"},
        Refused{"only_the_length", raw_file("", "", 2), ErrorKind::kCorruptData, "truncated inside its header"},
        Refused{"two_to_the_63", raw_file("{}", "", uint64_t{1} << 63), ErrorKind::kResourceLimit,
                "header of 9223372036854775808 bytes announced, the format allows 100000000"},
        Refused{"all_ones", raw_file("{}", "", ~uint64_t{0}), ErrorKind::kResourceLimit,
                "header of 18446744073709551615 bytes announced"},
        Refused{"almost_all_ones", raw_file("{}", "", ~uint64_t{0} - 7), ErrorKind::kResourceLimit, "announced"},
        Refused{"one_above_the_limit", raw_file("{}", "", 100'000'001), ErrorKind::kResourceLimit,
                "header of 100000001 bytes announced, the format allows 100000000"},
        Refused{"at_the_limit_but_short", raw_file("{}", "", 100'000'000), ErrorKind::kCorruptData,
                "expected at least 100000008 bytes, file has 10"}),
    label_of);

INSTANTIATE_TEST_SUITE_P(
    OtherFormats, RefusesFile,
    testing::Values(
        Refused{"lfs_pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 4976698672\n",
                ErrorKind::kNotFound, "this is a Git LFS pointer, not the file itself"},
        Refused{"html", "<!DOCTYPE html>\n<html><head>", ErrorKind::kUnsupported, "this is an HTML page"},
        Refused{"html_after_blank_lines", "\n\n  <html lang=\"en\"><head>", ErrorKind::kUnsupported,
                "this is an HTML page"},
        Refused{"xml", "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", ErrorKind::kUnsupported,
                "this is an XML document"},
        Refused{"json", "{\"error\":\"Repository not found\"}", ErrorKind::kUnsupported, "this is JSON text"},
        Refused{"zip", "PK\x03\x04\x00\x00\x08\x08"s + std::string(100, '\0'), ErrorKind::kUnsupported,
                "this is a zip archive"},
        Refused{"pickle", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s, ErrorKind::kUnsupported,
                "this is a Python pickle"},
        Refused{"pickle_whose_length_is_plausible", "\x80\x02\0\0\0\0\0\0"s + std::string(1000, 'x'),
                ErrorKind::kUnsupported, "this is a Python pickle"},
        Refused{"gguf", "GGUF\x03\0\0\0\x23\x01\0\0\0\0\0\0"s, ErrorKind::kUnsupported, "this is a GGUF file"},
        Refused{"gguf_of_four_bytes", "GGUF", ErrorKind::kUnsupported, "this is a GGUF file"},
        Refused{"npy", "\x93NUMPY\x01\0v\0{'descr'"s, ErrorKind::kUnsupported, "NumPy array"},
        Refused{"hdf5", "\x89HDF\r\n\x1a\n"s + std::string(100, '\0'), ErrorKind::kUnsupported, "HDF5"},
        Refused{"gzip", "\x1f\x8b\x08\0\0\0\0\0\0\x03"s, ErrorKind::kUnsupported, "gzip"}),
    label_of);

// A prefix of every length: all that a broken download can leave.
TEST(File, RefusesEveryTruncationAndNamesWhatIsCut) {
  const std::string whole = raw_file(kTwoTensors, "1234567");
  for (size_t length = 0; length < whole.size(); ++length) {
    MemoryStorage storage;
    auto file = open_bytes(whole.substr(0, length), storage);
    ASSERT_FALSE(file) << length;
    EXPECT_EQ(file.error().kind(), ErrorKind::kCorruptData) << length;
    EXPECT_THAT(file.error().message(), HasSubstr("download it again")) << length;
    if (length < 8 + kTwoTensors.size()) continue;
    EXPECT_THAT(
        file.error().message(),
        HasSubstr(fmt::format("expected {} bytes, file has {} ({} missing); first tensor cut is \"{}\"", whole.size(),
                              length, whole.size() - length, length < 8 + kTwoTensors.size() + 3 ? "a" : "b")));
  }
}

TEST(File, ReadsAnyRangeOfATensorAndNothingBeyondIt) {
  MemoryStorage storage;
  auto file = open_bytes(raw_file(kTwoTensors, "abcWXYZ"), storage);
  ASSERT_TRUE(file) << file.error().message();
  const TensorInfo& b = *(*file)->find("b");
  std::string out(2, ' ');
  ASSERT_TRUE((*file)->read(b, 1, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(out, "XY");
  EXPECT_TRUE((*file)->read(b, 4, {}));
  for (const auto& [offset, count] :
       {std::pair{uint64_t{3}, size_t{2}}, std::pair{uint64_t{5}, size_t{0}}, std::pair{~uint64_t{0}, size_t{2}}}) {
    std::string beyond(count, ' ');
    auto read = (*file)->read(b, offset, std::as_writable_bytes(std::span(beyond)));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(read.error().message(), HasSubstr("tensor \"b\""));
  }
}

TEST(File, AcceptsMetadataThatIsEmptyOrNull) {
  for (const char* metadata : {"{}", "null"}) {
    MemoryStorage storage;
    auto file = open_bytes(raw_file(fmt::format(R"({{"__metadata__":{}}})", metadata)), storage);
    EXPECT_TRUE(file) << file.error().message();
  }
}

TEST(File, HeaderDigestFollowsTheHeaderAndNotTheData) {
  const auto digest = [](const std::string& bytes) {
    MemoryStorage storage;
    return open_bytes(bytes, storage).value()->header_digest();
  };
  const std::string first = digest(raw_file(kTwoTensors, "abcWXYZ"));
  EXPECT_EQ(digest(raw_file(kTwoTensors, "ABCwxyz")), first);
  EXPECT_NE(digest(raw_file(std::string(kTwoTensors) + " ", "abcWXYZ")), first);
}

TEST(File, NoticesThatItWasReplacedOrShrank) {
  TemporaryFolder folder;
  const std::string path = folder / "m.safetensors";
  ASSERT_TRUE(local_storage().write_text(path, raw_file(kTwoTensors, "abcWXYZ")));
  auto file = File::open(local_storage(), path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE((*file)->check_unchanged());
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(8 + kTwoTensors.size() + 5)), 0);
  auto changed = (*file)->check_unchanged();
  ASSERT_FALSE(changed);
  EXPECT_THAT(changed.error().message(), HasSubstr("the file changed while it was read"));
  std::string out(4, ' ');
  auto read = (*file)->read(*(*file)->find("b"), 0, std::as_writable_bytes(std::span(out)));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message(), HasSubstr("reading tensor \"b\""));
}

TEST(File, RefusesWhatIsNoRegularFile) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe.safetensors").c_str(), 0600), 0);
  ASSERT_TRUE(local_storage().make_directories(folder / "model.safetensors"));
  ASSERT_EQ(::symlink("loop.safetensors", (folder / "loop.safetensors").c_str()), 0);
  for (const char* name : {"pipe.safetensors", "model.safetensors", "loop.safetensors", "none.safetensors"}) {
    auto file = File::open(local_storage(), folder / name);
    ASSERT_FALSE(file) << name;
    EXPECT_THAT(file.error().message(), HasSubstr(name));
  }
  EXPECT_EQ(File::open(local_storage(), folder / "none.safetensors").error().kind(), ErrorKind::kNotFound);
}

TEST(File, PassesOnWhatTheDiskReports) {
  MemoryStorage memory;
  ASSERT_TRUE(memory.write_text("/m.safetensors", raw_file(kTwoTensors, "abcWXYZ")));
  FaultyStorage storage(memory);
  auto file = File::open(storage, "/m.safetensors");
  ASSERT_TRUE(file) << file.error().message();
  storage.add({.operation = Operation::kRead, .error_number = EIO});
  std::string out(4, ' ');
  auto read = (*file)->read(*(*file)->find("b"), 0, std::as_writable_bytes(std::span(out)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace maxport::safetensors
