"""Writes a large array to TensorStore chunk by chunk.

Stock Orbax stores a NumPy array as one chunk unless told otherwise. TensorStore encodes a chunk as a whole and an OCDBT
store keeps what is encoded until it commits, so that one array needs its own size once more, or nearly so, while it is
written. Cut into chunks that are committed a few at a time, it needs those few only.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorstore
from orbax.checkpoint import type_handlers

#: An array of at least this many bytes is cut where Orbax would store one chunk.
CUT_FROM = 32 << 20
#: A chunk of more bytes was not asked for either: Orbax fits chunks into OCDBT's data files, which have 2 GiB.
CUT_BEYOND = 256 << 20
#: Most bytes of a chunk that was cut.
CHUNK = 8 << 20
#: What is committed together: at least this, and enough that an array needs at most `MOST_COMMITS` of them, each of which
#: is a file where the store is OCDBT.
COMMIT = 16 << 20
MOST_COMMITS = 32


class PiecewiseNumpyHandler(type_handlers.NumpyHandler):
  """Orbax's `NumpyHandler`, but for how a large array is written. Files of smaller ones are those of Orbax."""

  async def _open_and_write(self, value: np.ndarray, tspec: dict[str, Any], ts_context: Any) -> None:
    if value.nbytes >= CUT_FROM:
      cut(tspec, value.itemsize)
    store = await tensorstore.open(tensorstore.Spec(tspec), create=True, open=True, context=ts_context)
    grid = store.chunk_layout.write_chunk.shape or ()
    chunk = [step or extent for step, extent in zip(grid, value.shape)]
    for batch in batches(boxes(value.shape, chunk), value, max(COMMIT, value.nbytes // MOST_COMMITS)):
      # The array is ours alone and does not change, so that TensorStore need not copy it.
      await asyncio.gather(*(store[box].write(value[box], can_reference_source_data_indefinitely=True) for box in batch))


def cut(tspec: dict[str, Any], itemsize: int) -> None:
  """Changes a Zarr array's specification, v2 or v3, to chunks that are runs of bytes, unless smaller chunks were chosen."""
  while tspec["driver"] == "cast":
    tspec = tspec["base"]
  metadata = tspec["metadata"]
  shape = tuple(metadata["shape"])
  places = [metadata] if "chunks" in metadata else [
      metadata["chunk_grid"]["configuration"],
      *(codec["configuration"] for codec in metadata["codecs"] if codec["name"] == "sharding_indexed")
  ]
  for place in places:
    key = "chunks" if "chunks" in place else "chunk_shape"
    if tuple(place[key]) == shape or math.prod(place[key]) * itemsize > CUT_BEYOND:
      place[key] = chunk_of(shape, itemsize)


def chunk_of(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
  """The largest run of whole rows of at most `CHUNK` bytes."""
  chunk = list(shape)
  for axis, extent in enumerate(shape):
    row = math.prod(shape[axis + 1:]) * itemsize
    chunk[axis] = max(min(CHUNK // row, extent), 1)
    if row <= CHUNK:
      break
  return tuple(chunk)


def boxes(shape: Sequence[int], chunk: Sequence[int]) -> Iterator[tuple[slice, ...]]:
  """The chunks of an array, in order."""
  axes = [[slice(begin, min(begin + step, extent)) for begin in range(0, extent, step)] for extent, step in zip(shape, chunk)]
  return itertools.product(*axes)


def batches(chunks: Iterator[tuple[slice, ...]], value: np.ndarray, most: int) -> Iterator[list[tuple[slice, ...]]]:
  """Consecutive chunks that have at most `most` bytes together, or one chunk."""
  batch: list[tuple[slice, ...]] = []
  size = 0
  for box in chunks:
    nbytes = math.prod(part.stop - part.start for part in box) * value.itemsize
    if batch and size + nbytes > most:
      yield batch
      batch, size = [], 0
    batch.append(box)
    size += nbytes
  if batch:
    yield batch
