"""Peak memory of saving lazy tensors through stock Orbax v1, against saving the same tensors as NumPy arrays.

usage: bench_lazy_save.py [--tensors N] [--megabytes M] [--out DIR] [--only lazy|numpy]

--only prints one of the two as JSON.

Every figure comes from a process of its own. The baseline is the resident size after a first small save, when
everything is imported and Orbax's threads run; the peak is the highest resident size of the save after it (VmHWM).
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

MEBI = 1 << 20


def resident(field: str) -> float:
  """VmRSS or VmHWM of this process in MiB."""
  for line in pathlib.Path("/proc/self/status").read_text().splitlines():
    if line.startswith(field):
      return int(line.split()[1]) / 1024
  raise RuntimeError(f"/proc/self/status has no {field}")


def measure(mode: str, tensors: int, megabytes: int, out: pathlib.Path) -> dict[str, float]:
  os.environ["JAX_PLATFORMS"] = "cpu"
  import ml_dtypes
  import numpy as np
  from orbax.checkpoint import v1 as ocp

  import maxport.orbax

  shape = (megabytes * MEBI // 2048, 1024)

  class Lazy:
    """Weights that are drawn when they are asked for, as a converter reads them."""

    def __init__(self, seed: int, rows: int):
      self.seed, self.shape, self.dtype = seed, (rows, shape[1]), np.dtype(ml_dtypes.bfloat16)

    def __array__(self, dtype=None):
      random, array = np.random.default_rng(self.seed), np.empty(self.shape, self.dtype)
      for start in range(0, self.shape[0], 256):  # row blocks, so that drawing needs no second copy
        array[start:start + 256] = random.normal(size=array[start:start + 256].shape, scale=0.02)
      return array

  def save(path, tree):
    context = ocp.Context()
    context.checkpointables.registry = maxport.orbax.build_lazy_tensor_checkpointables_registry()
    with context:
      ocp.save_checkpointables(path, {"items": tree})

  save(out / "warm", {"a": Lazy(0, 16), "b": np.ones(4)})
  baseline = resident("VmRSS")
  pathlib.Path("/proc/self/clear_refs").write_text("5")
  start = time.monotonic()
  tree = {f"{i:03}": Lazy(i, shape[0]) for i in range(tensors)}
  save(out / "full", tree if mode == "lazy" else {name: np.asarray(leaf) for name, leaf in tree.items()})
  seconds = time.monotonic() - start
  peak = resident("VmHWM")
  return {"baseline": baseline, "peak": peak, "in_tensors": (peak - baseline) / megabytes, "seconds": seconds}


def run(mode: str, options: argparse.Namespace) -> dict[str, float]:
  with tempfile.TemporaryDirectory(dir=options.out) as out:
    command = [sys.executable, __file__, "--measure", mode, "--out", out, "--tensors", str(options.tensors),
               "--megabytes", str(options.megabytes)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
  return json.loads(output.splitlines()[-1])


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--tensors", type=int, default=8)
  parser.add_argument("--megabytes", type=int, default=128, help="size of one tensor (MiB)")
  parser.add_argument("--out", type=pathlib.Path, help="where to write; default: a temporary directory")
  parser.add_argument("--only", choices=["lazy", "numpy"])
  parser.add_argument("--measure", choices=["lazy", "numpy"], help=argparse.SUPPRESS)
  options = parser.parse_args()
  if options.measure:
    print(json.dumps(measure(options.measure, options.tensors, options.megabytes, options.out)))
    return
  if options.only:
    print(json.dumps(run(options.only, options)))
    return
  print(f"{options.tensors} bfloat16 tensors of {options.megabytes} MiB each")
  print(f"{'mode':6} {'baseline':>9} {'peak':>9} {'above':>9} {'in tensors':>10} {'seconds':>8}")
  for mode in ("lazy", "numpy"):
    result = run(mode, options)
    print(f"{mode:6} {result['baseline']:7.0f} M {result['peak']:7.0f} M {result['peak'] - result['baseline']:7.0f} M "
          f"{result['in_tensors']:10.2f} {result['seconds']:8.1f}")


if __name__ == "__main__":
  main()
