// Errors as values.
//
// Every function that can fail returns Result<T>. An Error carries a kind (which maps one to one to a documented
// exit code of the program), a message that says what was found and what was expected, and the context that each
// level adds on the way up ("reading tensor X", "in file Y"). No exception crosses a room.
#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace maxport {

enum class ErrorKind {
  kInvalidArgument,  ///< the caller asked for something that makes no sense
  kUnsupported,      ///< well formed, but not something maxport (or MaxText) can represent
  kNotFound,         ///< a file, tensor, leaf or shard that must be there is not
  kCorruptData,      ///< bytes that violate their format
  kIo,               ///< the operating system refused or failed
  kResourceLimit,    ///< a documented cap was exceeded (memory, header size, descriptors, disk space)
  kInterrupted,      ///< stopped by a signal or by the caller; the work can be resumed
  kInternal,         ///< a bug in maxport
};

/// The name used in messages and JSON reports, e.g. "corrupt data".
std::string_view error_kind_name(ErrorKind kind);

/// The exit status of the program for an error of this kind; see docs/exit-codes.md.
int exit_code(ErrorKind kind);

class Error {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  ErrorKind kind() const { return kind_; }

  /// The whole text, outermost context first: "converting A: reading B: found C, expected D".
  const std::string& message() const { return message_; }

  /// Puts `context` before the message, separated by ": ".
  Error&& with_context(std::string_view context) &&;

 private:
  ErrorKind kind_;
  std::string message_;
};

template <class T = void>
using Result = std::expected<T, Error>;

/// Builds the error side of any Result<T>.
template <class... Args>
std::unexpected<Error> fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error(kind, fmt::format(format, std::forward<Args>(args)...)));
}

/// Adds context to a failed result and passes a good one through.
template <class T>
Result<T> with_context(Result<T> result, std::string_view context) {
  if (!result) return std::unexpected(std::move(result.error()).with_context(context));
  return result;
}

/// Text from outside, made safe for a terminal or a log: control characters and invalid UTF-8 become \xNN.
std::string printable(std::string_view text);

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace maxport

#define MAXPORT_CONCAT_INNER(a, b) a##b
#define MAXPORT_CONCAT(a, b) MAXPORT_CONCAT_INNER(a, b)

/// MAXPORT_ASSIGN_OR_RETURN(auto x, f()): x becomes the value, or the enclosing function returns the error.
#define MAXPORT_ASSIGN_OR_RETURN(declaration, expression) \
  MAXPORT_ASSIGN_OR_RETURN_INNER(MAXPORT_CONCAT(maxport_result_, __LINE__), declaration, expression)
#define MAXPORT_ASSIGN_OR_RETURN_INNER(result, declaration, expression)   \
  auto result = (expression);                                            \
  if (!result) return std::unexpected(std::move(result).error());        \
  declaration = std::move(*result)

/// Returns the error of a Result, if it has one.
#define MAXPORT_RETURN_IF_ERROR(expression)                                                            \
  do {                                                                                                 \
    if (auto maxport_status = (expression); !maxport_status)                                           \
      return std::unexpected(std::move(maxport_status).error());                                       \
  } while (false)

/// For mistakes of ours only; no input may reach one.
#define MAXPORT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::maxport::check_failed(__FILE__, __LINE__, #condition))
