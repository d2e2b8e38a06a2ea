#include "errors.h"

#include <nanobind/nanobind.h>

#include <string>

namespace nb = nanobind;

namespace maxport::python {

void raise(const Error& error) {
  const nb::object by_kind = nb::module_::import_("maxport.errors").attr("BY_KIND");
  const nb::object type = by_kind[std::string(error_kind_name(error.kind())).c_str()];
  PyErr_SetString(type.ptr(), error.message().c_str());
  throw nb::python_error();
}

}  // namespace maxport::python
