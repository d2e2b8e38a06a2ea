"""Runs a command and measures it: exit status, wall time, peak resident memory."""
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

# A process of its own starts the command: a child that is forked from a large process is charged with that one's
# memory until it calls exec, and Python with JAX is large.
_STARTER = """
import os, subprocess, sys, time
start = time.monotonic()
process = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as figures:
  figures.write(f"{os.waitstatus_to_exitcode(status)} {usage.ru_maxrss * 1024} {time.monotonic() - start}")
"""


class Measured(NamedTuple):
  status: int
  seconds: float
  peak_bytes: int
  out: str
  err: str


def run(command: list, capture: bool = True, **options) -> Measured:
  """Options are those of subprocess.run. Without `capture` the command speaks where we do."""
  with tempfile.TemporaryDirectory() as folder:
    figures = pathlib.Path(folder) / "figures"
    done = subprocess.run([sys.executable, "-S", "-E", "-c", _STARTER, figures, *map(str, command)], capture_output=capture, text=True,
                          errors="replace", **options)
    status, peak, seconds = figures.read_text().split()
  return Measured(int(status), float(seconds), int(peak), done.stdout or "", done.stderr or "")
