#include "base/error.h"

#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"

namespace maxport {

std::string_view error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return "invalid argument";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kNotFound: return "not found";
    case ErrorKind::kCorruptData: return "corrupt data";
    case ErrorKind::kIo: return "I/O error";
    case ErrorKind::kResourceLimit: return "resource limit";
    case ErrorKind::kInterrupted: return "interrupted";
    case ErrorKind::kInternal: return "internal error";
  }
  return "unknown";
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return 2;
    case ErrorKind::kUnsupported: return 3;
    case ErrorKind::kNotFound: return 4;
    case ErrorKind::kCorruptData: return 5;
    case ErrorKind::kIo: return 6;
    case ErrorKind::kResourceLimit: return 7;
    case ErrorKind::kInterrupted: return 8;
    case ErrorKind::kInternal: return 70;
  }
  return 70;
}

Error&& Error::with_context(std::string_view context) && {
  message_ = fmt::format("{}: {}", context, message_);
  return std::move(*this);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_sequence_length(text.substr(i));
    const auto byte = static_cast<unsigned char>(text[i]);
    // C0, DEL, the C1 block (U+0080..U+009F) and malformed bytes can drive a terminal.
    const bool control = byte < 0x20 || byte == 0x7f ||
                         (length == 2 && byte == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0);
    if (length == 0 || control) {
      const size_t count = length == 0 ? 1 : length;
      for (size_t k = 0; k < count; ++k) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i + k]));
      i += count;
    } else {
      out.append(text.substr(i, length));
      i += length;
    }
  }
  return out;
}

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "maxport: internal error at %s:%d: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace maxport
