"""Stock Orbax restores what our writer makes of trees that MaxText does not have: every element type, lists, strings, numbers,
empty nodes and odd names, in each way of storing them; and it refuses our chunks once a bit of them is flipped."""
import json
import pathlib
import random
import shutil
import subprocess

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest
from orbax.checkpoint import v1

import stock
import support

EXAMPLE = support.PROGRAM.parent / "orbax_write_example"
LAYOUTS = [(store, version, compression) for store in ("ocdbt", "directory")
           for version, compressions in (("2", ("none", "zstd")), ("3", ("none", "zstd", "blosc"))) for compression in compressions]


def write(folder: pathlib.Path, layout, devices: int) -> dict:
  """A checkpoint in folder/0; what its leaves should be."""
  done = subprocess.run([EXAMPLE, folder, *layout, str(devices)], capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


def restore(step: pathlib.Path):
  """Without a target, as the leaves themselves say."""
  return ocp.PyTreeCheckpointer().restore(step / "items")


def leaves(tree) -> dict:
  found = {}

  def walk(node, path):
    if isinstance(node, (dict, list, tuple)) and node:
      for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        walk(value, (*path, str(key)))
    else:
      found[".".join(path)] = node

  walk(tree, ())
  return found


def differences(tree, expected: dict) -> list[str]:
  got, problems = leaves(tree), []
  for name, want in expected.items():
    leaf = got.get(name, "absent")
    if "empty" in want:
      # v0 leaves None out of a tree, or gives it back.
      if leaf not in {"dict": ({},), "list": ([],), "None": (None, "absent")}[want["empty"]]:
        problems.append(f"{name}: {leaf!r} for {want}")
    elif "value" in want:
      if leaf != want["value"] or type(leaf) is not type(want["value"]):
        problems.append(f"{name}: {leaf!r} for {want}")
    elif isinstance(leaf, str):
      problems.append(f"{name}: {leaf!r}")
    else:
      array = np.asarray(leaf)
      found = {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": stock.digest(array)}
      if found != want:
        problems.append(f"{name}: {found} for {want}")
  return problems + [f"{name} is not expected" for name in got if name not in expected]


@pytest.fixture
def x64():
  """64-bit types become 32-bit jax.Arrays unless JAX is told otherwise."""
  jax.config.update("jax_enable_x64", True)
  yield
  jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("devices", [0, 4], ids=["ndarray", "jax"])
@pytest.mark.parametrize("layout", LAYOUTS, ids="-".join)
def test_stock_orbax_restores_every_kind_of_leaf(layout, devices, tmp_path, x64):
  expected = write(tmp_path, layout, devices)
  step = tmp_path / "0"
  assert differences(restore(step), expected) == []
  assert differences(v1.load(step, checkpointable_name="items"), expected) == []
  assert differences(v1.load_checkpointables(step)["items"], expected) == []
  assert differences(stock.v1_load(step), expected) == []
  manager = ocp.CheckpointManager(tmp_path)
  assert manager.latest_step() == 0
  assert differences(manager.restore(0)["items"], expected) == []


@pytest.mark.parametrize("layout", [("ocdbt", "3", "blosc"), ("ocdbt", "3", "zstd"), ("ocdbt", "3", "none"), ("ocdbt", "2", "zstd")],
                         ids="-".join)
def test_stock_orbax_refuses_flipped_bits_in_chunks(layout, tmp_path):
  expected = write(tmp_path, layout, 0)
  step, rng = tmp_path / "0", random.Random(0)
  (data,) = (file for file in (step / "items" / "d").iterdir() if file.stat().st_size > 100_000)
  good = data.read_bytes()
  refused = 0
  for _ in range(25):
    at = rng.randrange(len(good))
    data.write_bytes(good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1:])
    try:
      tree = restore(step)
    except Exception:
      refused += 1
    else:
      assert differences(tree, expected) == []
  assert refused > 20
  data.write_bytes(good)
  assert differences(restore(step), expected) == []


def test_the_same_leaves_and_options_give_the_same_bytes(tmp_path):
  for layout in LAYOUTS:
    files = []
    for run in "a", "b":
      write(tmp_path / run, layout, 4)
      step = tmp_path / run / "0"
      files.append({str(f.relative_to(step)): f.read_bytes() for f in sorted(step.rglob("*")) if f.is_file()})
      shutil.rmtree(tmp_path / run)
    assert files[0] == files[1]
