"""NumPy's indexing in terms of boxes: which boxes to read, and what to do with them afterwards.

Every axis gets the ascending positions that are needed. Boxes that cover their product are read, into an array of
those positions only, and NumPy itself applies the rest of the key to it.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

#: Skipped parts of at least this many bytes are worth a read of their own.
_WORTH_SKIPPING = 64 << 10
#: A box of which only a part is wanted is read in pieces of about this many bytes.
_MAX_PARTIAL_BOX = 32 << 20

ReadBox = Callable[[tuple[int, ...], tuple[int, ...], np.ndarray], np.ndarray]
#: Ascending positions on one axis.
Positions = range | np.ndarray
#: First position and number of positions.
Interval = tuple[int, int]


def read(read_box: ReadBox, key: Any, shape: tuple[int, ...], dtype: np.dtype, granule: Sequence[int]) -> Any:
  """What `array[key]` is for an array of `shape` whose boxes `read_box` reads."""
  positions: list[Positions] = []
  rest: list[Any] = []
  for item in _expand(key, shape):
    if item is None or item is Ellipsis:
      rest.append(item)
      continue
    wanted, remaining = _on_axis(item, len(positions), shape[len(positions)])
    positions.append(wanted)
    rest.append(remaining)
  return _gather(read_box, positions, shape, dtype, granule)[tuple(rest)]


def _expand(key: Any, shape: tuple[int, ...]) -> list[Any]:
  """The key with one item an axis: what it leaves out as slices, masks as positions; with its None and `...` in place."""
  items = [_checked(item) for item in (key if isinstance(key, tuple) else (key,))]
  ellipses = [place for place, item in enumerate(items) if item is Ellipsis]
  if len(ellipses) > 1:
    raise IndexError("an index can only have a single ellipsis ('...')")
  missing = len(shape) - sum(_axes_of(item) for item in items)
  if missing < 0:
    raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, "
                     f"but {len(shape) - missing} were indexed")
  at = ellipses[0] if ellipses else len(items)
  expanded: list[Any] = []
  axis = 0
  for item in [*items[:at], *[slice(None)] * missing, *items[at:]]:
    if isinstance(item, np.ndarray) and item.dtype == np.bool_:
      covered = shape[axis:axis + item.ndim]
      if item.size and item.shape != covered:
        raise IndexError(f"boolean index has shape {item.shape}, but the axes that it indexes have {covered}")
      expanded.extend(item.nonzero())
    else:
      expanded.append(item)
    axis += _axes_of(item)
  return expanded


def _axes_of(item: Any) -> int:
  """How many axes of the array the item takes."""
  if item is None or item is Ellipsis:
    return 0
  return item.ndim if isinstance(item, np.ndarray) and item.dtype == np.bool_ else 1


def _checked(item: Any) -> Any:
  """An item of a key as None, `...`, a slice, an int or an array."""
  if item is None or item is Ellipsis or isinstance(item, slice):
    return item
  array = np.asarray(item)
  if array.size == 0 and not isinstance(item, np.ndarray):
    array = array.astype(np.intp)
  if array.dtype == np.bool_ and array.ndim == 0:
    raise IndexError("a single True or False is not supported as an index here; index np.asarray(array) with it")
  if array.dtype != np.bool_ and not np.issubdtype(array.dtype, np.integer):
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), np.newaxis (`None`) and integer or boolean "
                     "arrays are valid indices")
  return int(array) if array.ndim == 0 else array


def _on_axis(item: Any, axis: int, extent: int) -> tuple[Positions, Any]:
  """Positions that `item` needs, and the item that picks the same from those positions alone."""
  if isinstance(item, slice):
    wanted = range(*item.indices(extent))
    return (wanted[::-1], slice(None, None, -1)) if wanted.step < 0 else (wanted, slice(None))
  indices = np.asarray(item)
  if indices.size and (indices.min() < -extent or indices.max() >= extent):
    bad = indices[(indices < -extent) | (indices >= extent)].flat[0] if indices.ndim else item
    raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {extent}")
  if indices.ndim == 0:
    return range(int(indices) % extent, int(indices) % extent + 1), 0
  unique, inverse = np.unique(indices % max(extent, 1), return_inverse=True)
  return unique, inverse.reshape(indices.shape)


def _intervals(positions: Positions, worth_skipping: int, most: int) -> list[Interval]:
  """Covers the positions, leaving out gaps of at least `worth_skipping`, with intervals of at most `most`."""
  first, last = int(positions[0]), int(positions[-1])
  if isinstance(positions, range):
    if positions.step > worth_skipping:
      return [(position, 1) for position in positions]
    whole = [(first, last - first + 1)]
  else:
    starts = np.flatnonzero(np.diff(positions) > worth_skipping) + 1
    whole = [(int(part[0]), int(part[-1] - part[0]) + 1) for part in np.split(positions, starts)]
  return [(begin, min(most, first + count - begin)) for first, count in whole
          for begin in range(first, first + count, most)]


def _gather(read_box: ReadBox, positions: list[Positions], shape: tuple[int, ...], dtype: np.dtype,
            granule: Sequence[int]) -> np.ndarray:
  """Reads the product of all positions, as one array."""
  block = np.empty(tuple(len(wanted) for wanted in positions), dtype)
  if block.size == 0:
    return block
  spans = [int(wanted[-1]) - int(wanted[0]) + 1 for wanted in positions]
  partial = math.prod(spans) > block.size
  intervals = []
  for axis, wanted in enumerate(positions):
    stored_row, read_row = (math.prod(inner[axis + 1:]) * dtype.itemsize for inner in (shape, spans))
    skip = max(-(-_WORTH_SKIPPING // stored_row), granule[axis])
    most = -(-max(_MAX_PARTIAL_BOX // read_row, 1) // granule[axis]) * granule[axis]
    intervals.append(_intervals(wanted, skip, most if partial else spans[axis]))
  for chosen in itertools.product(*intervals):
    _read_box(read_box, positions, chosen, block)
  return block


def _read_box(read_box: ReadBox, positions: list[Positions], chosen: Sequence[Interval], block: np.ndarray) -> None:
  """Reads the product of the chosen intervals and copies what is wanted of it into its place in `block`."""
  target: list[Any] = []
  source: list[Any] = []
  for wanted, (first, count) in zip(positions, chosen):
    begin, end = bisect_left(wanted, first), bisect_left(wanted, first + count)
    target.append(slice(begin, end))
    inside = wanted[begin:end]
    source.append(slice(inside.start - first, inside.stop - first, inside.step)
                  if isinstance(inside, range) else inside - first)
  origin, shape = tuple(first for first, _ in chosen), tuple(count for _, count in chosen)
  place = block[(*target, ...)]
  if place.shape == shape and place.flags.c_contiguous:
    read_box(origin, shape, place)
    return
  box = read_box(origin, shape, np.empty(shape, block.dtype))
  for axis, offsets in enumerate(source):
    box = box[(slice(None),) * axis + (offsets,)]
  place[...] = box
