"""Models as pytrees of `jax.Array`s, straight from their files.

    model = maxport.plan("Llama-3.1-8B", scan_layers=True)
    params = maxport.jax.load(model, lambda name, array: NamedSharding(mesh, P("fsdp")))

Works for everything that `maxport.open` and `maxport.plan` return. With shardings over several devices and processes,
each process reads only the parts that its own devices hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from maxport._arrays import LazyArray
from maxport._checkpoint import Checkpoint
from maxport._checkpoint import open as open_checkpoint

#: A sharding for all arrays, or a function that chooses one for each.
Shardings = jax.sharding.Sharding | Callable[[str, LazyArray], jax.sharding.Sharding]


def load_array(array: LazyArray, sharding: jax.sharding.Sharding, dtype: Any = None) -> jax.Array:
  """One array with the given sharding, cast to `dtype` if that is given. Reads this process's shards only, each once."""
  shards: dict[tuple, np.ndarray] = {}

  def read(index: tuple[slice, ...] | None) -> np.ndarray:
    index = index or ()
    key = tuple((part.start, part.stop) for part in index)
    if key not in shards:
      part = np.asarray(array[(*index, ...)])
      shards[key] = part if dtype is None else part.astype(dtype)
    return shards[key]

  return jax.make_array_from_callback(array.shape, sharding, read)


def load(source: Checkpoint | str | os.PathLike[str], shardings: Shardings | None = None, *, dtype: Any = None) -> Any:
  """All arrays of a checkpoint or plan as a pytree of `jax.Array`s.

  Args:
    source: a checkpoint, a plan, or a path that `maxport.open` takes.
    shardings: one sharding for all arrays, or a function of name and `LazyArray`; by default everything lies on the
      first device.
    dtype: what floating-point arrays are cast to while reading; by default they keep their type.

  Returns:
    Nested dictionaries and lists as `Checkpoint.tree()` has them; for safetensors the flat dictionary of names.
  """
  checkpoint = source if isinstance(source, Checkpoint) else open_checkpoint(source)
  if shardings is None:
    shardings = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
  choose = shardings if callable(shardings) else lambda name, array: shardings

  def place(leaf: Any) -> Any:
    if not isinstance(leaf, LazyArray):
      return leaf
    floating = jax.numpy.issubdtype(leaf.dtype, jax.numpy.floating)
    return load_array(leaf, choose(leaf.name, leaf), dtype if floating else None)

  return jax.tree.map(place, checkpoint.tree())
