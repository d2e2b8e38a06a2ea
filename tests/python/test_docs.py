"""docs/python.md: its examples run, and print what their comments say."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> list[str]:
  """What all examples print, run in order in one program, in a folder as the page describes it."""
  folder = tmp_path_factory.mktemp("docs")
  data = ROOT / "tests" / "data"
  shutil.copytree(data / "goldens" / "llama3.1-8b" / "hf", folder / "Llama-3.1-8B")
  # The checkpoint's folder of steps, of a model with three layers.
  run = subprocess.run([sys.executable, "-c", CONVERT, folder], capture_output=True, text=True, check=False)
  assert run.returncode == 0, run.stderr
  program = "\n".join(EXAMPLES)
  environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
  run = subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True,
                       check=False)
  assert run.returncode == 0, run.stderr
  return run.stdout.splitlines()


CONVERT = """
import sys
import maxport, maxport.orbax
from orbax.checkpoint import v1 as ocp
context = ocp.Context()
context.checkpointables.registry = maxport.orbax.build_lazy_tensor_checkpointables_registry()
with context:
  ocp.save_checkpointables(sys.argv[1] + "/checkpoint/0", {"items": maxport.plan(sys.argv[1] + "/Llama-3.1-8B").tree()},
                           custom_metadata={"scan_layers": True})
"""


def test_the_page_has_examples():
  assert len(EXAMPLES) >= 6


def test_examples_print_what_the_page_says(printed):
  """Line by line; prints in loops, which say that something differs, do not count."""
  prints = re.findall(r"^ *(print\(.*\))(?: +# (.*))?$", "\n".join(EXAMPLES), re.MULTILINE)
  promised = [comment for call, comment in prints if "differs:" not in call]
  lines = [line for line in printed if not line.startswith("differs:")]
  assert len(lines) == len(promised) >= 10
  assert [line if comment else "" for line, comment in zip(lines, promised)] == promised
