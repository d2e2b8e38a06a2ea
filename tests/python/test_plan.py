"""maxport.plan: MaxText's parameters as lazy arrays, equal to what the reference converter wrote."""

import json
import pathlib
import random

import numpy as np
import pytest
from leaves import describe

import maxport

GOLDENS = pathlib.Path(__file__).parents[1] / "data" / "goldens"
OWN = ("--lazy_load_tensors", "skip_jax_distributed_system", "hardware")
CONVERSIONS = sorted((file.parent.parent.name, file.parent.name) for file in GOLDENS.glob("*/*/expected.json")
                     if "lora" not in file.parent.name)


def planned(family: str, tag: str) -> tuple[maxport.Plan, dict]:
  expected = json.loads((GOLDENS / family / tag / "expected.json").read_text())
  arguments = [word for word in expected["args"] if not word.startswith(OWN)]
  return maxport.plan(GOLDENS / family / "hf", arguments), expected["leaves"]


@pytest.mark.parametrize(("family", "tag"), CONVERSIONS)
def test_leaves_equal_the_reference_s(family, tag):
  plan, leaves = planned(family, tag)
  wanted = {name: leaf for name, leaf in leaves.items() if "sha256" in leaf and name != "step"}
  assert {name: describe(array) for name, array in plan.items()} == wanted


def test_parts_of_leaves_equal_parts_of_the_whole():
  rng = random.Random(3)
  plan, _ = planned("llama3.1-8b", "scan-float32")
  for array in plan.values():
    whole = np.asarray(array)
    for _ in range(20):
      key = tuple(slice(*sorted(rng.choices(range(extent + 1), k=2))) for extent in array.shape)
      np.testing.assert_array_equal(array[key], whole[key], strict=True)


def test_a_plan_tells_its_account():
  plan, leaves = planned("llama3.1-8b", "unscan-bfloat16")
  assert plan.family == "llama"
  assert plan.account["faults"] == []
  assert {"params." + leaf["name"] if not leaf["name"].startswith("params.params") else leaf["name"]
          for leaf in plan.steps["leaves"]} == set(plan)
  tree = plan.tree()["params"]["params"]
  assert tree["decoder"]["layers_0"]["mlp"]["wi_0"]["kernel"].shape == (80, 112)


def test_a_plan_that_does_not_add_up_names_the_tensor(tmp_path):
  import shutil

  source = GOLDENS / "llama3.1-8b" / "hf"
  shutil.copy(source / "config.json", tmp_path)
  content = (source / "model.safetensors").read_bytes()
  (tmp_path / "model.safetensors").write_bytes(content.replace(b"model.layers.1.mlp.up_proj", b"model.layers.1.mlp.up_what"))
  with pytest.raises(maxport.MaxportError, match="model.layers.1.mlp.up_proj"):
    maxport.plan(tmp_path)


def test_an_unknown_setting_is_refused_with_the_nearest_ones():
  with pytest.raises(maxport.InvalidArgumentError, match="scan_layers"):
    maxport.plan(GOLDENS / "llama3.1-8b" / "hf", scan_layer=True)
