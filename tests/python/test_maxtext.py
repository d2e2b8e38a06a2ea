"""MaxText 0.2.5's own converter: its fault, and the repair."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import orbax.checkpoint as ocp0
import pytest
from leaves import assert_leaves_equal
from orbax.checkpoint import v1 as ocp

HERE = pathlib.Path(__file__).parent
LAZY_ON_ONE_DEVICE = ["--lazy_load_tensors=true", "--simulated_cpu_devices_count=1"]
EAGER_ON_ONE_DEVICE = ["--lazy_load_tensors=false", "--simulated_cpu_devices_count=1"]


class Golden:
  """One conversion of one family: its arguments and what the reference wrote."""

  def __init__(self, folder: pathlib.Path, tag: str):
    expected = json.loads((folder / tag / "expected.json").read_text())
    self.hf = folder / "hf"
    self.logits = folder / "logits.safetensors"
    self.model = expected["model_name"]
    self.leaves = expected["leaves"]
    own = ("model_name=", "override_model_config=", "hardware=", "skip_jax_distributed_system=", "--lazy_load_tensors=")
    self.arguments = [argument for argument in expected["args"] if not argument.startswith(own)]

  def convert(self, which: str, out: pathlib.Path, how: list[str]) -> subprocess.CompletedProcess:
    command = [sys.executable, HERE / "maxtext_driver.py", which, self.model, self.hf, out, *self.arguments, *how]
    return subprocess.run(command, capture_output=True, text=True, check=False)

  def forward(self, items: pathlib.Path, out: pathlib.Path) -> np.ndarray:
    settings = [argument for argument in self.arguments if not argument.startswith("--")]
    command = [sys.executable, HERE / "maxtext_logits.py", self.model, items, self.logits, out, *settings]
    subprocess.run(command, capture_output=True, text=True, check=True)
    return np.load(out)


@pytest.fixture(scope="module", params=["scan-float32", "unscan-float32", "scan-bfloat16", "unscan-bfloat16"])
def golden(request, goldens) -> Golden:
  return Golden(goldens / "llama3.1-8b", request.param)


@pytest.fixture(scope="module")
def repaired(golden, tmp_path_factory) -> pathlib.Path:
  out = tmp_path_factory.mktemp("repaired")
  run = golden.convert("maxport", out, LAZY_ON_ONE_DEVICE)
  assert run.returncode == 0, run.stderr[-2000:]
  return out / "0"


def test_stock_maxtext_cannot_save_lazy_tensors_on_one_device(goldens, tmp_path):
  run = Golden(goldens / "llama3.1-8b", "scan-float32").convert("stock", tmp_path, LAZY_ON_ONE_DEVICE)
  assert run.returncode != 0
  assert 'NoEntryError: \'Could not identify a valid handler for the checkpointable: "items"' in run.stderr


def test_repaired_maxtext_writes_the_reference_leaves_for_orbax_v0(golden, repaired):
  assert_leaves_equal(ocp0.PyTreeCheckpointer().restore(repaired / "items"), golden.leaves)


def test_repaired_maxtext_writes_the_reference_leaves_for_orbax_v1(golden, repaired):
  assert_leaves_equal(ocp.load_checkpointables(repaired)["items"], golden.leaves)


def test_a_v0_manager_restores_the_repaired_checkpoint_without_arguments(golden, repaired):
  registry = ocp0.handlers.create_default_handler_registry()
  manager = ocp0.CheckpointManager(repaired.parent, handler_registry=registry)
  assert_leaves_equal(manager.restore(0)["items"], golden.leaves)


def test_lazy_leaves_are_recorded_as_numpy_arrays(repaired):
  metadata = json.loads((repaired / "items" / "_METADATA").read_text())["tree_metadata"].values()
  recorded = {leaf["value_metadata"]["value_type"] for leaf in metadata if len(leaf["key_metadata"]) > 1}
  assert recorded == {"np.ndarray"}


def test_logits_of_the_repaired_checkpoint_equal_those_of_the_eager_one(golden, repaired, tmp_path):
  run = golden.convert("stock", tmp_path / "eager", EAGER_ON_ONE_DEVICE)
  assert run.returncode == 0, run.stderr[-2000:]
  wanted = golden.forward(tmp_path / "eager" / "0" / "items", tmp_path / "eager.npy")
  found = golden.forward(repaired / "items", tmp_path / "repaired.npy")
  np.testing.assert_array_equal(found, wanted)


def test_leaves_of_another_dtype_than_asked_come_out_as_from_the_eager_path(goldens, tmp_path):
  gemma = Golden(goldens / "gemma2-2b", "scan-bfloat16")
  assert {leaf.get("dtype") for leaf in gemma.leaves.values()} >= {"bfloat16", "float32"}
  run = gemma.convert("maxport", tmp_path, LAZY_ON_ONE_DEVICE)
  assert run.returncode == 0, run.stderr[-2000:]
  assert_leaves_equal(ocp0.PyTreeCheckpointer().restore(tmp_path / "0" / "items"), gemma.leaves)


def test_an_unknown_tool_is_refused_with_the_known_ones():
  run = subprocess.run([sys.executable, "-m", "maxport.maxtext", "to_gguf"], capture_output=True, text=True, check=False)
  assert run.returncode == 2
  assert "expected one of to_maxtext, to_huggingface, found ['to_gguf']" in run.stderr
