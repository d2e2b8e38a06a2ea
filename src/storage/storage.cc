#include "storage/storage.h"

#include <cerrno>
#include <system_error>

#include "storage/system_error.h"

namespace maxport {
namespace {

ErrorKind kind_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR: return ErrorKind::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return ErrorKind::kResourceLimit;
    case EEXIST:
    case ENOTEMPTY:
    case EISDIR:
    case EINVAL:
    case ENAMETOOLONG: return ErrorKind::kInvalidArgument;
    default: return ErrorKind::kIo;
  }
}

std::string_view advice_for(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT: return "; free some space or choose another folder";
    case EMFILE: return "; raise the limit of open files (ulimit -n)";
    case EACCES:
    case EPERM: return "; check the permissions of the file and of its folders";
    case EROFS: return "; choose a folder on a file system that can be written";
    default: return "";
  }
}

}  // namespace

Error system_error(int error_number, std::string_view doing, std::string_view path) {
  return {kind_of(error_number), fmt::format("{} {}: {}{}", doing, printable(path),
                                             std::generic_category().message(error_number), advice_for(error_number))};
}

std::string join_path(std::string_view folder, std::string_view name) {
  if (folder.empty()) return std::string(name);
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  while (name.starts_with('/')) name.remove_prefix(1);
  return folder == "/" ? fmt::format("/{}", name) : fmt::format("{}/{}", folder, name);
}

std::string parent_path(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(slash == 0 ? path.substr(0, 1) : path.substr(0, slash));
}

Result<std::string> Storage::read_text(const std::string& path, uint64_t max_bytes) {
  MAXPORT_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, open(path));
  if (file->size() > max_bytes)
    return fail(ErrorKind::kResourceLimit, "reading {}: it has {} bytes, at most {} are allowed for a file of its kind",
                printable(path), file->size(), max_bytes);
  std::string text(file->size(), '\0');
  MAXPORT_RETURN_IF_ERROR(file->read_at(0, std::as_writable_bytes(std::span(text.data(), text.size()))));
  return text;
}

Result<> Storage::write_text(const std::string& path, std::string_view text) {
  MAXPORT_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, create(path));
  MAXPORT_RETURN_IF_ERROR(file->write_at(0, as_bytes(text)));
  MAXPORT_RETURN_IF_ERROR(file->sync());
  MAXPORT_RETURN_IF_ERROR(file->close());
  return sync_directory(parent_path(path));
}

}  // namespace maxport
