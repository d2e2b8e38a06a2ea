#include "safetensors/file.h"

#include <algorithm>
#include <array>

#include "base/digest.h"

namespace maxport::safetensors {
namespace {

struct Signature {
  std::string_view bytes;
  ErrorKind kind;
  std::string_view text;
};

using namespace std::string_view_literals;

// What turns up under the name model.safetensors.
constexpr std::array kSignatures = {
    Signature{"version https://git-lfs"sv, ErrorKind::kNotFound,
              "this is a Git LFS pointer, not the file itself; fetch the content with `git lfs pull` or download it "
              "again"},
    Signature{"PK\x03\x04"sv, ErrorKind::kUnsupported,
              "this is a zip archive, such as torch.save writes (.pt, .bin), not safetensors; convert it to "
              "safetensors first"},
    Signature{"GGUF"sv, ErrorKind::kUnsupported, "this is a GGUF file, not safetensors"},
    Signature{"\x80\x02"sv, ErrorKind::kUnsupported,
              "this is a Python pickle, such as old versions of torch.save write, not safetensors; convert it to "
              "safetensors first"},
    Signature{"\x80\x04"sv, ErrorKind::kUnsupported,
              "this is a Python pickle, not safetensors; convert it to safetensors first"},
    Signature{"\x93NUMPY"sv, ErrorKind::kUnsupported, "this is a NumPy array file, not safetensors"},
    Signature{"\x89HDF\r\n"sv, ErrorKind::kUnsupported, "this is an HDF5 file, not safetensors"},
    Signature{"\x1f\x8b"sv, ErrorKind::kUnsupported, "this is a gzip file, not safetensors; decompress it first"},
    Signature{"\x28\xb5\x2f\xfd"sv, ErrorKind::kUnsupported,
              "this is a zstd file, not safetensors; decompress it first"},
};

// Error pages that a download saved under the file's name.
constexpr std::array kPages = {
    Signature{"<!doctype"sv, ErrorKind::kUnsupported,
              "this is an HTML page, not safetensors; the download failed, repeat it"},
    Signature{"<html"sv, ErrorKind::kUnsupported,
              "this is an HTML page, not safetensors; the download failed, repeat it"},
    Signature{"<?xml"sv, ErrorKind::kUnsupported,
              "this is an XML document, not safetensors; the download failed, repeat it"},
    Signature{"{"sv, ErrorKind::kUnsupported,
              "this is JSON text, not safetensors; the download may have failed, repeat it"},
};

const Signature* match(ByteSpan first_bytes) {
  const std::string_view text = as_text(first_bytes);
  for (const Signature& row : kSignatures)
    if (text.starts_with(row.bytes)) return &row;
  std::string folded(text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size())));
  for (char& c : folded)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const Signature& row : kPages)
    if (folded.starts_with(row.bytes)) return &row;
  return nullptr;
}

}  // namespace

std::optional<std::string> recognise_other_format(ByteSpan first_bytes) {
  const Signature* row = match(first_bytes);
  if (row == nullptr) return std::nullopt;
  return std::string(row->text);
}

Result<> check_range(const TensorInfo& tensor, uint64_t byte_offset, uint64_t count, std::string_view path) {
  if (byte_offset <= tensor.byte_size() && count <= tensor.byte_size() - byte_offset) return {};
  return fail(ErrorKind::kInvalidArgument, "{}: tensor {}: {} bytes asked for at byte {}, it has {}", printable(path),
              quoted_name(tensor.name), count, byte_offset, tensor.byte_size());
}

Result<Bytes> File::read_header_block() const {
  const uint64_t size = file_->size();
  std::array<std::byte, 64> first{};
  const MutableByteSpan front(first.data(), static_cast<size_t>(std::min<uint64_t>(size, first.size())));
  MAXPORT_RETURN_IF_ERROR(file_->read_at(0, front));
  const uint64_t length = size < 8 ? 0 : load_le<uint64_t>(first.data());
  const bool plausible = size > 8 && length > 0 && length <= kMaxHeaderBytes;
  // A magic number read as a length is far beyond the limit; where it is not, the first byte of the header tells.
  if (!plausible || length > size - 8 ||
      std::string_view("{ \t\r\n").find(static_cast<char>(first[8])) == std::string_view::npos) {
    if (const Signature* row = match(front)) return fail(row->kind, "{}: {}", path(), row->text);
  }
  if (size < 8 || length == 0)
    return fail(ErrorKind::kCorruptData, "{}: too small for a safetensors file: {} bytes{}; download it again", path(),
                size, size < 8 ? "" : " with a header of 0 bytes");
  if (length > kMaxHeaderBytes)
    return fail(ErrorKind::kResourceLimit,
                "{}: header of {} bytes announced, the format allows {}: not a safetensors file, or a damaged one",
                path(), length, kMaxHeaderBytes);
  if (length > size - 8)
    return fail(ErrorKind::kCorruptData,
                "{}: header of {} bytes announced, so expected at least {} bytes, file has {}: the file is truncated "
                "inside its header, before any tensor; download it again",
                path(), length, length + 8, size);
  Bytes block(static_cast<size_t>(length + 8));
  MAXPORT_RETURN_IF_ERROR(file_->read_at(0, block));
  return block;
}

Result<> File::load_header(MetadataPolicy policy) {
  MAXPORT_ASSIGN_OR_RETURN(const Bytes block, read_header_block());
  MAXPORT_ASSIGN_OR_RETURN(header_, parse_header(ByteSpan(block).subspan(8), file_->size(), path(), policy));
  data_begin_ = block.size();
  header_digest_ = xxh128_hex(block);
  return {};
}

Result<std::unique_ptr<File>> File::open(Storage& storage, const std::string& path, MetadataPolicy policy) {
  MAXPORT_ASSIGN_OR_RETURN(auto readable, storage.open(path));
  MAXPORT_ASSIGN_OR_RETURN(const FileStamp stamp, readable->stamp());
  std::unique_ptr<File> file(new File(std::move(readable), stamp));
  MAXPORT_RETURN_IF_ERROR(file->load_header(policy));
  return file;
}

Result<> File::read(const TensorInfo& tensor, uint64_t byte_offset, MutableByteSpan out) const {
  MAXPORT_RETURN_IF_ERROR(check_range(tensor, byte_offset, out.size(), path()));
  return with_context(file_->read_at(tensor.begin + byte_offset, out),
                      fmt::format("reading tensor {}", quoted_name(tensor.name)));
}

Result<> File::check_unchanged() const {
  MAXPORT_ASSIGN_OR_RETURN(const FileStamp now, file_->stamp());
  if (now == stamp_) return {};
  return fail(ErrorKind::kIo, "{}: the file changed while it was read (size {}, then {}); run again", path(),
              stamp_.size, now.size);
}

}  // namespace maxport::safetensors
