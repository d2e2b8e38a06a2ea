"""Checkpoints as mappings from names to lazy arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from maxport import _core
from maxport._arrays import LazyArray


#: What the markers of empty containers stand for; a named tuple's type is not stored.
_EMPTY: dict[str, Callable[[], Any]] = {"Dict": dict, "List": list, "Tuple": tuple, "NamedTuple": tuple, "None": lambda: None}


def nest(leaves: Mapping[tuple, Any]) -> Any:
  """Nested dictionaries from paths; levels whose keys are ints become lists."""
  if () in leaves:
    return leaves[()]
  inner: dict[Any, dict[tuple, Any]] = {}
  for path, leaf in leaves.items():
    inner.setdefault(path[0], {})[path[1:]] = leaf
  nested = {key: nest(below) for key, below in inner.items()}
  if nested and all(isinstance(key, int) for key in nested):
    return [nested[index] for index in sorted(nested)]
  return nested


class Checkpoint(Mapping[str, LazyArray]):
  """A checkpoint: a mapping of tensor names, in sorted order, to `LazyArray`s.

  Opening reads configuration and headers; numbers are read when an array is indexed. Any number of threads may share
  a checkpoint. Files stay open until the checkpoint and all its arrays are gone.

  Attributes:
    format: "safetensors" (loose files), "huggingface" (a model or adapter folder) or "orbax".
    path: what is read, after following a hub cache to its snapshot or a checkpoint directory to its step and item.
    metadata: the files' own `__metadata__`, or the custom metadata of an Orbax step.
    config: config.json of a Hugging Face folder, else None.
    texts: string leaves of an Orbax tree, by name.
    empties: empty containers of an Orbax tree, by name: "Dict", "List", "Tuple", "NamedTuple" or "None".
    notes: what was odd about the files but did no harm.
  """

  def __init__(self, core: _core.Checkpoint):
    self._core = core
    self._names = core.names
    self.format: str = core.format
    self.path: str = core.path
    self.metadata: dict[str, Any] = json.loads(core.metadata)
    self.config: dict[str, Any] | None = json.loads(core.config)
    self.texts: dict[str, str] = core.texts
    self.empties: dict[str, str] = core.empties
    self.notes: list[str] = core.notes

  def __getitem__(self, name: str) -> LazyArray:
    """The array of that name; NotFoundError, which is a KeyError, when there is none."""
    if not isinstance(name, str):
      raise KeyError(name)
    return LazyArray(name, self._core.tensor(name))

  def __iter__(self) -> Iterator[str]:
    return iter(self._names)

  def __len__(self) -> int:
    return len(self._names)

  @property
  def nbytes(self) -> int:
    """Size of all numbers in memory."""
    return sum(array.nbytes for array in self.values())

  def tree(self) -> dict[Any, Any]:
    """The leaves as the nested dictionaries and lists that were saved.

    Strings, None and empty containers are in their places. For safetensors, whose names have no structure, this is
    the flat dictionary.
    """
    if not self._core.paths:
      return dict(self.items())
    leaves: dict[str, Any] = {**dict(self.items()), **self.texts}
    leaves.update((name, _EMPTY[kind]()) for name, kind in self.empties.items())
    return nest({tuple(path): leaves[name] for name, path in self._core.paths.items()})

  def __repr__(self) -> str:
    return f"<maxport.Checkpoint {self.path!r} format={self.format} tensors={len(self)}>"


def open(path: str | os.PathLike[str], *, step: int | None = None, item: str | None = None) -> Checkpoint:  # noqa: A001
  """Opens any checkpoint that maxport reads.

  Args:
    path: a safetensors file; a folder with a Hugging Face model, an adapter or loose safetensors files, also one of
      the hub's cache; or an Orbax checkpoint: the directory of steps, a step, or an item.
    step: of an Orbax directory of steps; the latest if not given.
    item: of an Orbax step with several items; "items", "default", "state" or the only one if not given.

  Raises:
    NotFoundError, CorruptDataError, UnsupportedError, IoError, ...: see maxport.errors.
  """
  return Checkpoint(_core.open(os.fspath(path), step, item))
