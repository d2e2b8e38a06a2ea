// The module maxport._core: a thin layer, wrapped by the package. Everything that reads releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "checkpoint.h"
#include "errors.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace maxport::python {
namespace {

/// Between pieces of this size Python may act on a signal.
constexpr int64_t kPieceBytes = int64_t{64} << 20;

/// A tensor together with the checkpoint that it reads from.
struct Tensor {
  std::shared_ptr<Checkpoint> owner;
  const NamedTensor* tensor;

  nb::tuple shape() const { return nb::tuple(nb::cast(tensor->lazy->shape())); }
  nb::tuple granule() const { return nb::tuple(nb::cast(tensor->granule)); }
  std::string dtype() const { return std::string(dtype_name(tensor->lazy->dtype())); }
};

/// Cuts the first piece off `rest`, along its first axis that is longer than 1 and at a multiple of the granule.
Box take_piece(Box& rest, const NamedTensor& tensor) {
  Box piece = rest;
  for (size_t axis = 0; axis < rest.shape.size(); ++axis) {
    if (rest.shape[axis] <= 1) continue;
    const int64_t row_bytes = element_count(rest.shape) / rest.shape[axis] * dtype_bytes(tensor.lazy->dtype());
    const int64_t granule = tensor.granule[axis];
    const int64_t rows = std::max<int64_t>(kPieceBytes / std::max<int64_t>(row_bytes, 1), 1);
    const int64_t end = std::max((rest.origin[axis] + rows) / granule, rest.origin[axis] / granule + 1) * granule;
    piece.shape[axis] = std::min(end - rest.origin[axis], rest.shape[axis]);
    rest.origin[axis] += piece.shape[axis];
    rest.shape[axis] -= piece.shape[axis];
    return piece;
  }
  rest.shape.assign(1, 0);
  return piece;
}

using Buffer = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void read(const Tensor& self, std::vector<int64_t> origin, std::vector<int64_t> shape, const Buffer& buffer) {
  Box rest{std::move(origin), std::move(shape)};
  const orbax::LazyTensor& lazy = *self.tensor->lazy;
  MutableByteSpan out(reinterpret_cast<std::byte*>(buffer.data()), buffer.size());
  if (!contains(lazy.shape(), rest))
    raise(Error(ErrorKind::kInvalidArgument,
                fmt::format("reading a box of {} at {}: it is not within shape {}", shape_text(rest.shape),
                            shape_text(rest.origin), shape_text(lazy.shape()))));
  if (static_cast<uint64_t>(element_count(rest.shape) * dtype_bytes(lazy.dtype())) != out.size())
    raise(Error(ErrorKind::kInvalidArgument,
                fmt::format("reading a box of {}: the buffer has {} bytes", shape_text(rest.shape), out.size())));
  while (!rest.empty()) {
    const Box piece = take_piece(rest, *self.tensor);
    const auto bytes = static_cast<size_t>(element_count(piece.shape) * dtype_bytes(lazy.dtype()));
    Result<> done;
    {
      nb::gil_scoped_release released;
      done = lazy.read(piece, lazy.dtype(), out.first(bytes));
    }
    value_or_raise(std::move(done));
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    out = out.subspan(bytes);
  }
}

std::shared_ptr<Checkpoint> open(const std::string& path, std::optional<int64_t> step,
                                 const std::optional<std::string>& item) {
  Result<std::shared_ptr<Checkpoint>> opened = [&] {
    nb::gil_scoped_release released;
    return Checkpoint::open(local_storage(), path, step, item);
  }();
  return value_or_raise(std::move(opened));
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

  module.def("open", &open, "path"_a, "step"_a.none(), "item"_a.none());
}

}  // namespace
}  // namespace maxport::python
