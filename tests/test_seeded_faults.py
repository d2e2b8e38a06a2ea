"""Every kind of mistake that a parameter map can make shows: in the logits, and when each element is derived again."""
import functools
import json

import numpy as np
import pytest

import big_model
import seeded_faults
import support

FAMILIES = sorted(p.name for p in support.GOLDENS.iterdir() if (p / "logits.safetensors").exists())
NOT_SCANNED = {"gemma4-e2b", "qwen3-vl-2b", "qwen3-omni-30b-a3b"}
# A faultless float32 checkpoint has less than a thousandth of it; gemma3's embedding scale is rounded (docs/logits.md).
MOST_KL = {"gemma3-4b": 3e-5}


@functools.cache
def source(family: str) -> tuple[dict, dict]:
  folder = support.GOLDENS / family / "hf"
  tensors = {name: array.astype(np.float32) for name, array in support.load_tensors(folder).items()}
  return tensors, json.loads((folder / "config.json").read_text())


def with_fault(family: str, name: str) -> dict | None:
  tensors, config = source(family)
  after = seeded_faults.FAULTS[name](tensors, seeded_faults.text_config(config))
  assert after.keys() == tensors.keys()
  return after if any(after[n] is not tensors[n] and not np.array_equal(after[n], tensors[n]) for n in tensors) else None


CASES = [(family, name) for family in FAMILIES for name in seeded_faults.FAULTS if with_fault(family, name) is not None]


def write(folder, family: str, tensors: dict):
  folder.mkdir()
  (folder / "config.json").write_text(json.dumps(source(family)[1]))
  support.save_tensors(folder / "model.safetensors", tensors, {"format": "pt"})
  return folder


def converted(folder, out, family: str, scan: bool):
  done = support.to_maxtext(folder, out, f"scan_layers={str(scan).lower()}", "--save_dtype=float32", "--nosync")
  assert done.status == 0, done
  return out / "0"


def compare_logits(step, family: str) -> tuple[int, dict]:
  done = support.run("logits", step, f"--golden_logits={support.GOLDENS / family / 'logits.safetensors'}",
                     f"--max_kl_div={MOST_KL.get(family, 1e-5)}", "--json")
  return done.status, json.loads(done.out)["comparisons"][0]


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_fault_both_checks_pass(tmp_path, family):
  folder = write(tmp_path / "hf", family, source(family)[0])
  step = converted(folder, tmp_path / "out", family, family not in NOT_SCANNED)
  assert compare_logits(step, family)[0] == 0
  done = support.run("verify", step, f"--source={folder}")
  assert done.status == 0, done


@pytest.mark.parametrize("family,name", CASES)
def test_both_checks_see_the_fault(tmp_path, family, name):
  """In scanned and unscanned checkpoints by turns."""
  faulty = write(tmp_path / "faulty", family, with_fault(family, name))
  right = write(tmp_path / "hf", family, source(family)[0])
  scan = family not in NOT_SCANNED and CASES.index((family, name)) % 2 == 0
  step = converted(faulty, tmp_path / "out", family, scan)
  status, figures = compare_logits(step, family)
  assert status == 1, figures
  # The record of the conversion is that of the faulty one, so only the source can tell.
  done = support.run("verify", step, f"--source={right}")
  assert done.status != 0 and "params" in done.text, done


def test_there_are_enough_kinds_and_each_applies_somewhere():
  assert len(seeded_faults.FAULTS) >= 20
  assert {name for _, name in CASES} == set(seeded_faults.FAULTS)


REDUCED = big_model.llama_config(layers=8, hidden=256, mlp=1024, heads=8, kv_heads=4, vocab=512, dtype="float32")


def test_swapped_halves_of_a_reduced_llama_score_as_people_report(tmp_path):
  """Gate and up exchanged in a Llama of random numbers: a cosine of about 0.73, and few tokens right. Only a comparison of
  logits tells it from a model that was trained badly."""
  rng = np.random.default_rng(3)
  tensors = {name: ((1 + rng.normal(0, 0.1, shape)) if "norm" in name else rng.normal(0, 0.0375, shape)).astype(np.float32)
             for name, shape in big_model.tensor_shapes(REDUCED).items()}
  folders = []
  for name, content in ("right", tensors), ("faulty", seeded_faults.FAULTS["gate_and_up_swapped"](tensors, REDUCED)):
    folders.append(tmp_path / name)
    folders[-1].mkdir()
    (folders[-1] / "config.json").write_text(json.dumps(REDUCED))
    support.save_tensors(folders[-1] / "model.safetensors", content, {"format": "pt"})
  ids = ";".join(",".join(map(str, rng.integers(0, 512, 16))) for _ in range(4))
  step = converted(folders[1], tmp_path / "out", "llama3.1-8b", True)
  done = support.run("logits", step, folders[0], f"--ids={ids}", "--json")
  figures, = json.loads(done.out)["comparisons"]
  assert done.status == 1 and 0.70 < figures["cosine"] < 0.76 and figures["argmax_agreement"] < 0.25, figures
