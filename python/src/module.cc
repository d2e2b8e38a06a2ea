// The module maxport._core: a thin layer, wrapped by the package. Everything that reads releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "checkpoint.h"
#include "errors.h"
#include "pieces.h"
#include "planned_model.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace maxport::python {
namespace {

/// A tensor together with the checkpoint that it reads from.
struct Tensor {
  std::shared_ptr<Checkpoint> owner;
  const NamedTensor* tensor;

  nb::tuple shape() const { return nb::tuple(nb::cast(tensor->lazy->shape())); }
  nb::tuple granule() const { return nb::tuple(nb::cast(tensor->granule)); }
  std::string dtype() const { return std::string(dtype_name(tensor->lazy->dtype())); }
};

using Buffer = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void read(const Tensor& self, std::vector<int64_t> origin, std::vector<int64_t> shape, const Buffer& buffer) {
  const Box region{std::move(origin), std::move(shape)};
  const orbax::LazyTensor& lazy = *self.tensor->lazy;
  MutableByteSpan out(reinterpret_cast<std::byte*>(buffer.data()), buffer.size());
  if (!contains(lazy.shape(), region))
    raise(Error(ErrorKind::kInvalidArgument,
                fmt::format("reading a box of {} at {}: it is not within shape {}", shape_text(region.shape),
                            shape_text(region.origin), shape_text(lazy.shape()))));
  if (static_cast<uint64_t>(element_count(region.shape) * dtype_bytes(lazy.dtype())) != out.size())
    raise(Error(ErrorKind::kInvalidArgument,
                fmt::format("reading a box of {}: the buffer has {} bytes", shape_text(region.shape), out.size())));
  Result<> done;
  {
    nb::gil_scoped_release released;
    done = read_in_pieces(*self.tensor, region, out, [] {
      nb::gil_scoped_acquire held;
      return PyErr_CheckSignals() == 0;
    });
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  value_or_raise(std::move(done));
}

std::shared_ptr<Checkpoint> open(const std::string& path, std::optional<int64_t> step,
                                 const std::optional<std::string>& item) {
  Result<std::shared_ptr<Checkpoint>> opened = [&] {
    nb::gil_scoped_release released;
    return Checkpoint::open(local_storage(), path, step, item);
  }();
  return value_or_raise(std::move(opened));
}

std::shared_ptr<PlannedModel> plan(const std::vector<std::string>& words) {
  Result<std::shared_ptr<PlannedModel>> planned = [&] {
    nb::gil_scoped_release released;
    return PlannedModel::open(local_storage(), words);
  }();
  return value_or_raise(std::move(planned));
}

std::vector<std::string> names(const Checkpoint& self) {
  std::vector<std::string> all;
  for (const auto& [name, tensor] : self.tensors) all.push_back(name);
  return all;
}

Tensor tensor(const std::shared_ptr<Checkpoint>& self, const std::string& name) {
  const auto found = self->tensors.find(name);
  if (found == self->tensors.end())
    raise(Error(ErrorKind::kNotFound, fmt::format("{}: there is no tensor called {}", printable(self->path),
                                                  printable(name))));
  return {self, &found->second};
}

NB_MODULE(_core, module) {
  module.attr("__version__") = MAXPORT_VERSION;

  nb::class_<Tensor>(module, "Tensor")
      .def_prop_ro("shape", &Tensor::shape)
      .def_prop_ro("granule", &Tensor::granule)
      .def_prop_ro("dtype", &Tensor::dtype)
      .def("read", &read, "origin"_a, "shape"_a, "out"_a);

  nb::class_<Checkpoint>(module, "Checkpoint")
      .def_ro("format", &Checkpoint::format)
      .def_ro("path", &Checkpoint::path)
      .def_ro("paths", &Checkpoint::paths)
      .def_ro("texts", &Checkpoint::texts)
      .def_ro("empties", &Checkpoint::empties)
      .def_ro("metadata", &Checkpoint::metadata)
      .def_ro("config", &Checkpoint::config)
      .def_ro("notes", &Checkpoint::notes)
      .def_prop_ro("names", &names)
      .def("tensor", &tensor, "name"_a);

  nb::class_<PlannedModel, Checkpoint>(module, "PlannedModel")
      .def_ro("family", &PlannedModel::family)
      .def_ro("account", &PlannedModel::account)
      .def_ro("plan", &PlannedModel::plan);

  module.def("plan", &plan, "words"_a);
  module.def("open", &open, "path"_a, "step"_a.none(), "item"_a.none());
}

}  // namespace
}  // namespace maxport::python
