"""Stock Orbax as the judge: the four ways in which people restore a MaxText checkpoint, and leaf-by-leaf comparison.

The sharded restores need four simulated devices: XLA_FLAGS must say so before JAX is imported.
"""
import functools
import hashlib
import pathlib

import jax
import numpy as np
import orbax.checkpoint as ocp
from orbax.checkpoint import v1


@functools.cache
def mesh() -> jax.sharding.Mesh:
  assert len(jax.devices()) == 4, "XLA_FLAGS=--xla_force_host_platform_device_count=4 must be set before JAX is imported"
  return jax.sharding.Mesh(np.array(jax.devices()), ("x",))


def sharding(*axes) -> jax.sharding.NamedSharding:
  return jax.sharding.NamedSharding(mesh(), jax.sharding.PartitionSpec(*axes))


def restore_v0(items: pathlib.Path, restore_args):
  """`restore_args(leaf metadata)` chooses how each leaf comes."""
  checkpointer = ocp.PyTreeCheckpointer()
  metadata = checkpointer.metadata(items)
  metadata = getattr(metadata, "item_metadata", metadata)
  tree = getattr(metadata, "tree", metadata)
  return checkpointer.restore(items, restore_args=jax.tree.map(restore_args, tree))


def v0_numpy(step: pathlib.Path):
  def restore_args(leaf):
    return ocp.RestoreArgs(restore_type=np.ndarray) if hasattr(leaf, "shape") else ocp.RestoreArgs()

  return restore_v0(step / "items", restore_args)


def v0_sharded(step: pathlib.Path):
  def restore_args(leaf):
    shape = getattr(leaf, "shape", None)
    if not shape:
      return ocp.RestoreArgs()
    return ocp.ArrayRestoreArgs(restore_type=jax.Array, sharding=sharding("x") if shape[0] % 4 == 0 else sharding())

  return restore_v0(step / "items", restore_args)


def abstract(metadata):
  """What v1 is asked for: every array replicated over the four devices."""
  return jax.tree.map(
      lambda m: jax.ShapeDtypeStruct(m.shape, m.dtype, sharding=sharding()) if getattr(m, "shape", None) else m, metadata)


def v1_load(step: pathlib.Path):
  metadata = v1.metadata(step, checkpointable_name="items").metadata
  return v1.load(step, abstract(metadata), checkpointable_name="items")


def v1_load_checkpointables(step: pathlib.Path):
  metadata = v1.checkpointables_metadata(step).metadata
  return v1.load_checkpointables(step, {"items": abstract(metadata["items"])})["items"]


RESTORES = {"v0 NumPy": v0_numpy, "v0 jax.Array on 4 devices": v0_sharded, "v1 load": v1_load,
            "v1 load_checkpointables": v1_load_checkpointables}


def leaves(tree) -> dict:
  """{dotted path: leaf}; empty subtrees as "empty dict"."""
  found = {}

  def walk(node, path):
    if isinstance(node, dict):
      if not node and path:
        found[".".join(path)] = "empty dict"
      for key, value in node.items():
        walk(value, (*path, str(key)))
    else:
      found[".".join(path)] = node

  walk(tree, ())
  return found


def digest(array: np.ndarray) -> str:
  return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def differences(tree, expected: dict) -> list[str]:
  """How a restored tree differs from the leaves of an expected.json, a line each."""
  got, problems = leaves(tree), []
  for path, want in expected.items():
    if path not in got:
      if "empty" not in want:
        problems.append(f"{path} is missing")
      continue
    leaf = got[path]
    if "empty" in want:
      if not isinstance(leaf, str) and leaf is not None:
        problems.append(f"{path}: {type(leaf)} for an empty subtree")
      continue
    array = np.asarray(leaf)
    found = (str(array.dtype), list(array.shape))
    if found != (want["dtype"], want["shape"]):
      problems.append(f"{path}: {found} for {(want['dtype'], want['shape'])}")
    elif digest(array) != want["sha256"]:
      problems.append(f"{path}: other values")
  problems += [f"{path} is not expected" for path in got if path not in expected]
  return problems
