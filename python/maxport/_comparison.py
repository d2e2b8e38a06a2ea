"""Comparing checkpoints."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from maxport import _program, errors
from maxport._arrays import LazyArray
from maxport._checkpoint import Checkpoint
from maxport._checkpoint import open as open_checkpoint
from maxport._planning import Plan, words

Path = str | os.PathLike[str]

#: Bytes of one piece when arrays are compared.
_PIECE = 16 << 20


@dataclasses.dataclass(frozen=True)
class Difference:
  """How one array differs between two checkpoints."""

  name: str
  what: str  #: "shape", "dtype" or "values"
  first: str  #: the shape, dtype, or the number of differing elements and the size
  second: str
  max_abs: float | None = None  #: largest absolute difference, where values differ; NaN where a NaN stands alone


@dataclasses.dataclass(frozen=True)
class Comparison:
  """What two checkpoints have in common and where they differ."""

  equal: list[str]
  differences: list[Difference]
  only_in_first: list[str]
  only_in_second: list[str]

  @property
  def same(self) -> bool:
    """True when both hold the same arrays with the same values."""
    return not (self.differences or self.only_in_first or self.only_in_second)


def compare(first: Checkpoint | Path, second: Checkpoint | Path, *, ignore_dtype: bool = False,
            **settings: Any) -> Comparison:
  """Compares two checkpoints array by array, without holding more than a piece of either.

  Arrays are matched by name where both sides have the same form. Otherwise the parameter map says what belongs together, as
  for `maxport compare`: a Hugging Face model is compared with a MaxText checkpoint by MaxText's parameters, each with
  what a conversion of the model gives, and a scanned checkpoint with an unscanned one by the tensors of the Hugging Face
  model. Only parameters count then, and equal means equal bits.

  A plan is compared by name too: `compare(maxport.plan(model, save_dtype="float32"), checkpoint)`. It holds parameters
  only, so what else the checkpoint holds (the step, an optimizer's state) does not count.

  Args:
    first, second: checkpoints, plans, or paths that `maxport.open` takes.
    ignore_dtype: compare values of different types as float64 instead of calling that a difference.
    **settings: what the parameter map needs and neither side tells: `hf_model_path=...`, `model_name="llama3.1-8b"` or
      other settings of a conversion.
  """
  a, b = (side if isinstance(side, Checkpoint) else open_checkpoint(side) for side in (first, second))
  if _is_model(a) and _is_tree(b) or _is_tree(a) and _is_model(b):
    return _compare_by_map(a, b, ignore_dtype, settings)
  if _is_tree(a) and _is_tree(b) and _parameters(a) != _parameters(b):
    try:
      return _compare_by_map(a, b, ignore_dtype, settings)
    except (errors.InvalidArgumentError, errors.NotFoundError, errors.UnsupportedError):
      if settings:
        raise
  names_of_a, names_of_b = list(a), list(b)
  if isinstance(a, Plan) != isinstance(b, Plan):
    names_of_a, names_of_b = _parameters(a), _parameters(b)
  equal, differences = [], []
  for name in names_of_a:
    if name in b:
      difference = _compare_array(a[name], b[name], ignore_dtype)
      differences.append(difference) if difference else equal.append(name)
  return Comparison(equal, differences, [name for name in names_of_a if name not in b],
                    [name for name in names_of_b if name not in a])


def _is_model(checkpoint: Checkpoint) -> bool:
  return checkpoint.format == "huggingface"


def _is_tree(checkpoint: Checkpoint) -> bool:
  return checkpoint.format == "orbax"


def _parameters(checkpoint: Checkpoint) -> list[str]:
  return [name for name in checkpoint if name.startswith("params.")]


def _compare_by_map(a: Checkpoint, b: Checkpoint, ignore_dtype: bool, settings: dict[str, Any]) -> Comparison:
  # The command knows this one as an option alone.
  options = [f"--{word}" if word.startswith("hf_model_path=") else word for word in words(settings)]
  found = _program.run(["compare", a.path, b.path, *options])
  equal, differences = [], []
  for tensor in found["tensors"]:
    difference = _difference(tensor, ignore_dtype)
    if difference:
      differences.append(difference)
    elif tensor["a"] and tensor["b"]:
      equal.append(tensor["name"])
  return Comparison(equal, differences, [tensor["name"] for tensor in found["tensors"] if not tensor["b"]],
                    [tensor["name"] for tensor in found["tensors"] if not tensor["a"]])


def _difference(tensor: dict[str, Any], ignore_dtype: bool) -> Difference | None:
  """What an entry of the program's report says of a tensor that both sides have."""
  a, b = tensor["a"], tensor["b"]
  if not a or not b:
    return None
  if a["shape"] != b["shape"]:
    return Difference(tensor["name"], "shape", str(tuple(a["shape"])), str(tuple(b["shape"])))
  if a["dtype"] != b["dtype"] and not ignore_dtype:
    return Difference(tensor["name"], "dtype", a["dtype"], b["dtype"])
  if not tensor["differing"]:
    return None
  largest = float("nan") if tensor["non_finite"] else tensor["max_difference"]
  return Difference(tensor["name"], "values", f"{tensor['differing']} differ", f"of {tensor['elements']}", largest)


def _compare_array(a: LazyArray, b: LazyArray, ignore_dtype: bool) -> Difference | None:
  if a.shape != b.shape:
    return Difference(a.name, "shape", str(a.shape), str(b.shape))
  if a.dtype != b.dtype and not ignore_dtype:
    return Difference(a.name, "dtype", str(a.dtype), str(b.dtype))
  count, largest = 0, 0.0
  for piece in _pieces(a):
    x, y = np.asarray(a[piece]), np.asarray(b[piece])
    if x.dtype == y.dtype and x.tobytes() == y.tobytes():
      continue
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    if x.dtype != y.dtype:
      x, y = x.astype(wide), y.astype(wide)
    unequal = (x != y) & ~((x != x) & (y != y))  # a NaN equals a NaN
    if unequal.any():
      count += int(unequal.sum())
      with np.errstate(invalid="ignore"):
        largest = float(np.maximum(largest, np.abs(x[unequal].astype(wide) - y[unequal].astype(wide)).max()))
  return Difference(a.name, "values", f"{count} differ", f"of {a.size}", largest) if count else None


def _pieces(array: LazyArray) -> Iterator[tuple]:
  """Keys that cover the array, each of about `_PIECE` bytes."""
  if array.size == 0:
    return
  axis, rows = 0, array.nbytes
  outer: list[range] = []
  while axis < array.ndim:
    rows //= array.shape[axis]
    if rows <= _PIECE:
      break
    outer.append(range(array.shape[axis]))
    axis += 1
  if axis == array.ndim:
    yield from np.ndindex(array.shape)
    return
  step = max(_PIECE // max(rows, 1), 1)
  for index in np.ndindex(*(len(extent) for extent in outer)):
    for begin in range(0, array.shape[axis], step):
      yield (*index, slice(begin, begin + step))
