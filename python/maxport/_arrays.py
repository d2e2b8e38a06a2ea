"""Arrays that are read when they are indexed."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from maxport import _selection


def numpy_dtype(name: str) -> np.dtype:
  """The NumPy dtype of that name; ml_dtypes has those that NumPy lacks."""
  try:
    return np.dtype(name)
  except TypeError:
    return np.dtype(getattr(ml_dtypes, name))


class LazyArray:
  """One tensor of a checkpoint: knows its shape and dtype, and reads its numbers when it is indexed.

  `a[...]` follows NumPy's rules, returns NumPy arrays and reads only what is asked for, in whole chunks where the
  checkpoint stores chunks. Nothing is kept: indexing twice reads twice. `np.asarray(a)` reads everything. Any
  number of threads may share it.
  """

  __slots__ = ("_granule", "_tensor", "dtype", "name", "shape")

  # NumPy's scalars and arrays leave binary operators to us, where there are none, instead of reading everything.
  __array_ufunc__ = None

  def __init__(self, name: str, tensor: Any):
    self.name: str = name
    self._tensor = tensor
    self._granule: tuple[int, ...] = tensor.granule
    self.shape: tuple[int, ...] = tensor.shape
    self.dtype: np.dtype = numpy_dtype(tensor.dtype)

  @property
  def ndim(self) -> int:
    return len(self.shape)

  @property
  def size(self) -> int:
    return math.prod(self.shape)

  @property
  def itemsize(self) -> int:
    return self.dtype.itemsize

  @property
  def nbytes(self) -> int:
    """Size of the numbers in memory."""
    return self.size * self.dtype.itemsize

  def __len__(self) -> int:
    if not self.shape:
      raise TypeError("len() of unsized object")
    return self.shape[0]

  def __iter__(self):
    for i in range(len(self)):
      yield self[i]

  def __getitem__(self, key: Any) -> Any:
    return _selection.read(self._read_box, key, self.shape, self.dtype, self._granule)

  def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    if copy is False:
      raise ValueError(f"{self.name!r} is not in memory, so an array of it is always a copy")
    array = self._read_box((0,) * self.ndim, self.shape, np.empty(self.shape, self.dtype))
    return array if dtype is None else array.astype(dtype, copy=False)

  def _read_box(self, origin: tuple[int, ...], shape: tuple[int, ...], out: np.ndarray) -> np.ndarray:
    """Fills `out`, a C-contiguous array of `shape`, with that box."""
    self._tensor.read(origin, shape, out.reshape(-1).view(np.uint8))
    return out

  def __repr__(self) -> str:
    return f"<maxport.LazyArray {self.name!r} shape={self.shape} dtype={self.dtype}>"
