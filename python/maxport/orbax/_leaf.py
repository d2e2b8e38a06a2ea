"""The leaf handler: writes a lazy tensor as an `np.ndarray`."""

from __future__ import annotations

import abc
import ctypes
import dataclasses
import functools
import math
from collections.abc import Awaitable, Sequence
from typing import Any

import jax
import numpy as np
from orbax.checkpoint import v1 as ocp

from maxport.orbax import _stock


#: From this size on, what Orbax allocated for a leaf is worth returning to the system.
_LARGE = 1 << 20

#: glibc keeps the many small blocks in which an encoded leaf was buffered; left alone they add up to several leaves.
_trim = functools.partial(getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0), 0)


class LazyTensor(abc.ABC):
  """Any type with `__array__` that is not itself an array: the leaf type under which the handler is registered.

  Orbax picks handlers by a leaf's type, and lazy tensors commonly set `shape` and `dtype` per instance, so the type
  is recognized by `__array__` alone; the handler checks the rest. Deriving from this class is not needed.
  """

  @classmethod
  def __subclasshook__(cls, candidate):
    if cls is not LazyTensor:
      return NotImplemented
    if issubclass(candidate, (np.ndarray, np.generic, jax.Array)):
      return False
    return callable(getattr(candidate, "__array__", None))


class DeclaredLeaf:
  """A lazy leaf whose declaration has been checked: `shape` is a tuple of ints and `dtype` an `np.dtype`.

  Orbax reads a leaf's size on its own account, from whatever the leaf calls `nbytes` and `dtype`; this keeps a leaf
  with a type for its dtype, or an `nbytes` that loads the data, from getting in its way.
  """

  def __init__(self, name: str, leaf: Any):
    """Raises ValueError, with the leaf's name and type, when the leaf is not a lazy tensor; materializes nothing."""
    described = f"lazy tensor {name!r} of type {type(leaf).__module__}.{type(leaf).__qualname__}"
    missing = [attribute for attribute in ("shape", "dtype") if not hasattr(leaf, attribute)]
    if missing:
      raise ValueError(f"saving {described}: it has no attribute {' and no '.join(missing)}; a lazy tensor needs "
                       "shape, dtype and __array__")
    try:
      self.shape = tuple(int(extent) for extent in leaf.shape)
      self.dtype = np.dtype(leaf.dtype)
    except TypeError as error:
      raise ValueError(f"saving {described}: shape {leaf.shape!r} and dtype {leaf.dtype!r} are not those of a "
                       f"NumPy array: {error}") from error
    if self.dtype.hasobject:
      raise ValueError(f"saving {described}: dtype {self.dtype} holds Python objects, which Orbax cannot store")
    if 0 in self.shape:
      raise ValueError(f"saving {described}: shape {self.shape} has no elements, which Orbax refuses to save")
    self.name = name
    self._leaf = leaf

  @property
  def size(self) -> int:
    return math.prod(self.shape)

  @property
  def nbytes(self) -> int:
    return self.size * self.dtype.itemsize

  def __array__(self, dtype=None, copy=None):
    array = np.asarray(self._leaf)
    if array.shape != self.shape:
      raise ValueError(f"saving lazy tensor {self.name!r}: __array__ returned shape {array.shape}, "
                       f"expected {self.shape}")
    return array if dtype is None else array.astype(dtype, copy=False)


class LazyTensorLeafHandler:
  """An Orbax v1 `LeafHandler` for lazy tensors.

  Saving materializes one leaf, writes it, waits until it is committed and drops it before the next, in the background
  part of the save; so a lazy tensor must stay readable and unchanged until the save has finished. Loading returns
  `np.ndarray`s, as Orbax does for every leaf recorded as such.
  """

  #: Cast what `__array__` returns to the leaf's own `dtype`. A subclass whose leaves only estimate it says False.
  casts_to_declared_dtype = True

  def __init__(self, *, context: ocp.Context | None = None):
    context = context if context is not None else _stock.get_context()
    # A materialized leaf belongs to this handler alone: Orbax's protective copy would only double the peak.
    own = ocp.Context()
    own.array.saving = context.array.saving
    own.array.loading = context.array.loading
    own.pathways.checkpointing_impl = context.pathways.checkpointing_impl
    own.memory.deepcopy_host_arrays = False
    self._numpy = _stock.numpy_leaf_handler(own)

  async def serialize(self, params: Sequence[Any], serialization_context: Any) -> Awaitable[None]:
    """Checks all leaves now; the returned awaitable writes them, one after the other."""
    checked = []
    for param in params:
      leaf = param.value if isinstance(param.value, DeclaredLeaf) else DeclaredLeaf(param.name, param.value)
      checked.append(dataclasses.replace(param, value=leaf))
    return self._write(checked, serialization_context)

  async def _write(self, params: list[Any], serialization_context: Any) -> None:
    await serialization_context.parent_dir.await_creation()
    while params:
      param = params.pop(0)
      array = np.asarray(param.value, param.value.dtype if self.casts_to_declared_dtype else None)
      committed = await self._numpy.serialize([dataclasses.replace(param, value=array)], serialization_context)
      await committed
      large = array.nbytes >= _LARGE
      # These names would keep the leaf alive while the next one is being materialized.
      del array, committed, param
      if large:
        _trim()

  async def deserialize(self, params: Sequence[Any], deserialization_context: Any) -> Awaitable[Sequence[np.ndarray]]:
    return await self._numpy.deserialize(params, deserialization_context)

  async def metadata(self, params: Sequence[Any], deserialization_context: Any) -> Sequence[Any]:
    return await self._numpy.metadata(params, deserialization_context)
