"""How soon the program does something: the time to its first data file, with a model of 2000 tensors, and of --help.

usage: bench_start.py [--repeat 9]
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import big_model

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("MAXPORT_PROGRAM", REPOSITORY / "build" / "maxport"))
LAYERS = 222  # of nine tensors each, three more around them


def finish(command: list) -> None:
  """posix_spawn rather than a fork, whose time depends on this process' size."""
  quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
  process = os.posix_spawn(command[0], list(map(str, command)), os.environ, file_actions=quiet)
  _, status = os.waitpid(process, 0)
  assert status == 0, command


def birth(path: pathlib.Path) -> float:
  return float(subprocess.run(["stat", "--format=%.W", path], check=True, capture_output=True, text=True).stdout)


def help_seconds() -> float:
  start = time.monotonic()
  finish([PROGRAM, "--help"])
  return time.monotonic() - start


def first_data_seconds(source: pathlib.Path, out: pathlib.Path, scan: bool) -> float:
  """Until the first file of chunks exists. The system counts such times in ticks of up to 4 ms."""
  shutil.rmtree(out, ignore_errors=True)
  start = time.time()
  finish([PROGRAM, "to_maxtext", f"--hf_model_path={source}", f"base_output_directory={out}", f"scan_layers={str(scan).lower()}"])
  # The very first file holds what describes the arrays.
  return sorted(birth(path) for path in (out / "0" / "items" / "d").iterdir())[1] - start


def measure(folder: pathlib.Path, repeat: int) -> list[dict]:
  source = folder / "many-tensors"
  big_model.write_model(source, big_model.llama_config(layers=LAYERS, hidden=256, mlp=512, heads=4, kv_heads=2, vocab=1000))
  cases = [("--help", help_seconds)] + [
      (f"first chunk of 2001 tensors, {'scanned' if scan else 'unscanned'}", lambda scan=scan: first_data_seconds(source, folder / "out", scan))
      for scan in (True, False)]
  rows = []
  for name, case in cases:
    times = sorted(case() for _ in range(repeat))
    rows.append({"group": "start", "name": name, "seconds": times[0], "median": times[len(times) // 2], "peak_bytes": 0, "written": 0})
    print(f"{'start':16}{name:44}{times[0] * 1000:6.1f} ms, median {times[len(times) // 2] * 1000:.1f} ms", flush=True)
  shutil.rmtree(source)
  return rows


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--repeat", type=int, default=9)
  with tempfile.TemporaryDirectory() as temporary:
    measure(pathlib.Path(temporary), parser.parse_args().repeat)
