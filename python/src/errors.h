// Errors as values become Python exceptions here, and nowhere else.
#pragma once

#include <utility>

#include "base/error.h"

namespace maxport::python {

/// Raises the class of maxport.errors that mirrors the error's kind. Needs the GIL.
[[noreturn]] void raise(const Error& error);

/// The value, or an exception. Needs the GIL.
template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace maxport::python
