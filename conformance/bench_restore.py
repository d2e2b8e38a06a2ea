"""Times reading checkpoints of one model with stock readers, round by round, so that all meet the same machine.

usage: bench_restore.py numpy|maxtext ROUNDS STEP_FOLDER ...

numpy: Orbax v0, all leaves as NumPy arrays. maxtext: MaxText's own load_params_from_path, parameters as jax.Array sharded
over 16 devices (needs the environment of requirements/maxtext.txt). The first round is not counted. Prints a JSON list: of
each folder the list of seconds.
"""
import gc
import json
import os
import pathlib
import sys
import time

DEVICES = 16
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
import jax
import numpy as np

import stock


def load_numpy(step: pathlib.Path):
  return stock.v0_numpy(step)


def sharded(leaf):
  """As MaxText's fully sharded training has it: cut along the first axis that can be."""
  if not getattr(leaf, "shape", None):
    return leaf
  axis = next((i for i, extent in enumerate(leaf.shape) if extent % DEVICES == 0), None)
  axes = [None] * len(leaf.shape)
  if axis is not None:
    axes[axis] = "fsdp"
  sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()), ("fsdp",)), jax.sharding.PartitionSpec(*axes))
  return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)


def load_maxtext(step: pathlib.Path):
  from maxtext.common import checkpointing
  from orbax.checkpoint import v1
  wanted = jax.tree.map(sharded, v1.metadata(step, checkpointable_name="items").metadata["params"])
  return jax.block_until_ready(checkpointing.load_params_from_path(str(step / "items"), wanted, 96))


def main() -> None:
  load = {"numpy": load_numpy, "maxtext": load_maxtext}[sys.argv[1]]
  steps = [pathlib.Path(argument).absolute() for argument in sys.argv[3:]]
  times = [[] for _ in steps]
  for _ in range(int(sys.argv[2]) + 1):
    for seconds, step in zip(times, steps):
      gc.collect()
      start = time.monotonic()
      tree = load(step)
      seconds.append(time.monotonic() - start)
      del tree
  print(json.dumps([seconds[1:] for seconds in times]))


if __name__ == "__main__":
  main()
