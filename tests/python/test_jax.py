"""maxport.jax: pytrees of jax.Arrays straight from files."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

DATA = pathlib.Path(__file__).parents[1] / "data"


def run(script: str, *arguments) -> dict:
  """Runs the script with four devices; it prints one line of JSON."""
  environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
  command = [sys.executable, "-c", PRELUDE + script, *map(str, arguments)]
  result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
  assert result.returncode == 0, result.stderr
  return json.loads(result.stdout.splitlines()[-1])


PRELUDE = """
import json, sys
import jax, numpy as np
import maxport, maxport.jax
from jax.sharding import NamedSharding, PartitionSpec
mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
"""


def test_a_model_becomes_a_sharded_pytree():
  found = run("""
model = maxport.open(sys.argv[1])
def choose(name, array):
  axes = [axis if extent % 2 == 0 else None for axis, extent in zip("ab", array.shape)]
  return NamedSharding(mesh, PartitionSpec(*axes))
params = maxport.jax.load(model, choose)
print(json.dumps({
  "same": all(np.array_equal(np.asarray(params[name]), np.asarray(model[name])) for name in model),
  "dtypes": sorted({str(array.dtype) for array in params.values()}),
  "spec": list(params["lm_head.weight"].sharding.spec),
  "shard": params["lm_head.weight"].addressable_shards[0].data.shape,
}))
""", DATA / "goldens" / "llama3.1-8b" / "hf")
  assert found == {"same": True, "dtypes": ["bfloat16"], "spec": ["a", "b"], "shard": [80, 40]}


def test_a_plan_becomes_maxtext_s_tree_and_is_cast():
  found = run("""
plan = maxport.plan(sys.argv[1], scan_layers=True, save_dtype="float32")
params = maxport.jax.load(plan, NamedSharding(mesh, PartitionSpec()), dtype=jax.numpy.bfloat16)
leaves = {".".join(str(key.key) for key in path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}
print(json.dumps({
  "names": sorted(leaves) == sorted(plan),
  "same": all(np.array_equal(np.asarray(leaf), np.asarray(plan[name], jax.numpy.bfloat16)) for name, leaf in leaves.items()),
}))
""", DATA / "goldens" / "llama3.1-8b" / "hf")
  assert found == {"names": True, "same": True}


def test_an_orbax_tree_keeps_its_structure_and_integers_their_type():
  found = run("""
tree = maxport.jax.load(sys.argv[1], dtype=jax.numpy.float16)
print(json.dumps({"text": tree["s"], "tuple": [str(leaf.dtype) for leaf in tree["tup"]], "bool": str(tree["b"].dtype)}))
""", DATA / "orbax_samples" / "v0_pytree_odd_leaves")
  assert found == {"text": "hello", "tuple": ["float16", "float16"], "bool": "bool"}


@pytest.mark.parametrize(("spec", "share"), [("PartitionSpec('a')", 0.5), ("PartitionSpec('a', 'b')", 0.25)])
def test_only_the_shards_of_this_process_are_read(tmp_path, spec, share):
  """One process with one of four devices' shards: the callback is asked for that shard alone."""
  found = run(f"""
rows = columns = 4096
with open(sys.argv[1], "wb") as file:
  text = json.dumps({{"w": {{"dtype": "F32", "shape": [rows, columns], "data_offsets": [0, rows * columns * 4]}}}}).encode()
  file.write(len(text).to_bytes(8, "little") + text)
  file.truncate(8 + len(text) + rows * columns * 4)
lazy = maxport.open(sys.argv[1])["w"]
def bytes_read():
  return int(dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())["rchar"])
reads = []
class Counting:
  shape = lazy.shape
  def __getitem__(self, key):
    before = bytes_read()
    part = lazy[key]
    reads.append(bytes_read() - before)
    return part
maxport.jax.load_array(Counting(), NamedSharding(mesh, {spec}))
print(json.dumps({{"reads": reads, "whole": rows * columns * 4}}))
""", tmp_path / "a.safetensors")
  assert len(found["reads"]) == round(1 / share)
  # Columns of a row are read together with what lies between them only when that is little.
  assert all(read <= found["whole"] * min(2 * share, 0.5) + 65536 for read in found["reads"])
