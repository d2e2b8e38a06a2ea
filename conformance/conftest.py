"""`make conformance` runs these tests in the environment of requirements/orbax.txt; scripts for MaxText and transformers
run in environments of their own, whose interpreters MAXPORT_MAXTEXT and MAXPORT_TRANSFORMERS name."""
import os
import pathlib
import subprocess
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import pytest

import real_model


class Script:
  """A script of this folder in the environment that an environment variable names."""

  def __init__(self, variable: str):
    self.variable = variable

  def __call__(self, name: str, *arguments, check: bool = True) -> subprocess.CompletedProcess:
    python = os.environ.get(self.variable)
    assert python, f"{self.variable} must name a Python interpreter; `make conformance` makes the environment and sets it"
    # The scripts choose their own number of devices.
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run([python, HERE / name, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=1800)
    assert done.returncode == 0 or not check, f"{name} {arguments}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done


@pytest.fixture(scope="session")
def maxtext() -> Script:
  return Script("MAXPORT_MAXTEXT")


@pytest.fixture(scope="session")
def transformers() -> Script:
  return Script("MAXPORT_TRANSFORMERS")


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory) -> pathlib.Path:
  """The trained model in bfloat16; the one that the demo made, if it did."""
  made = HERE.parent / "demo-output" / "SmolLM2-135M-Instruct"
  return real_model.make(made if made.exists() else tmp_path_factory.mktemp("smollm2") / "hf")
