"""Converting, verifying and comparing."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from maxport import _program
from maxport._arrays import LazyArray
from maxport._checkpoint import Checkpoint
from maxport._checkpoint import open as open_checkpoint
from maxport._planning import Plan, words

Path = str | os.PathLike[str]

#: Bytes of one piece when arrays are compared.
_PIECE = 16 << 20


def convert(source: Path, output: Path, arguments: Sequence[str] = (), *, progress: _program.Progress | None = None,
            **settings: Any) -> dict[str, Any]:
  """Converts a Hugging Face model to a MaxText checkpoint, or a MaxText checkpoint to a Hugging Face model.

  Which of the two follows from `source`. An interrupted conversion is continued by the same call.

  Args:
    source: the model's folder, or the checkpoint, step or item.
    output: the directory of steps to write into, or the model folder to make.
    arguments: words as on the command lines of `maxport to_maxtext` and `maxport to_huggingface`, e.g. "--overwrite".
    progress: called with the share that is done, 0.0 to 1.0.
    **settings: the same as keywords: `scan_layers=True`, `save_dtype="bfloat16"`, `max_memory="200MB"`.

  Returns:
    The report, as the command's `--json` prints it: where the result is, its size, the seconds and the memory it took.
  """
  source, output = os.fspath(source), os.fspath(output)
  if open_checkpoint(source).format == "orbax":
    command = ["to_huggingface", f"load_parameters_path={source}"]
  else:
    command = ["to_maxtext", f"hf_model_path={source}"]
  return _program.run([*command, f"base_output_directory={output}", *arguments, *words(settings)], progress)


def verify(checkpoint: Path, source: Path | None = None, **settings: Any) -> dict[str, Any]:
  """Reads every chunk of a MaxText checkpoint and says whether it is whole and unchanged.

  Args:
    checkpoint: a directory of steps, a step or an item.
    source: the Hugging Face model that it was made from; with it every element is derived again and compared.
    **settings: MaxText settings that the plan depends on and the checkpoint does not tell.

  Returns:
    The report: "good", and under "damages" what is wrong with which leaf.
  """
  origin = [] if source is None else [f"--source={os.fspath(source)}"]
  return _program.run(["verify", os.fspath(checkpoint), *origin, *words(settings)])


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


def compare(first: Checkpoint | Path, second: Checkpoint | Path, *, ignore_dtype: bool = False) -> Comparison:
  """Compares two checkpoints array by array, without holding more than a piece of either.

  The two may be of any formats; arrays are matched by name. To compare a Hugging Face model with a MaxText checkpoint,
  compare its plan: `compare(maxport.plan(model), checkpoint)`. A plan holds parameters only, so what else the checkpoint
  holds (the step, an optimizer's state) does not count then.

  Args:
    first, second: checkpoints, plans, or paths that `maxport.open` takes.
    ignore_dtype: compare values of different types as float64 instead of calling that a difference.
  """
  a, b = (side if isinstance(side, Checkpoint) else open_checkpoint(side) for side in (first, second))
  names_of_a, names_of_b = list(a), list(b)
  if isinstance(a, Plan) != isinstance(b, Plan):
    names_of_a, names_of_b = ([name for name in names if name.startswith("params.")] for names in (a, b))
  equal, differences = [], []
  for name in names_of_a:
    if name in b:
      difference = _compare_array(a[name], b[name], ignore_dtype)
      differences.append(difference) if difference else equal.append(name)
  return Comparison(equal, differences, [name for name in names_of_a if name not in b],
                    [name for name in names_of_b if name not in a])


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
