"""MaxText itself runs what maxport wrote for the Llama family, told only what the emitted run configuration says, and
agrees with transformers on the source."""
import json
import pathlib

import numpy as np
import pytest
import safetensors.numpy

import big_model
import stock
import support


def run_configuration(out: pathlib.Path) -> pathlib.Path:
  """The YAML file that maxport puts beside the checkpoint."""
  found, = (p for p in out.rglob("*.yml"))
  return found


def convert(source: pathlib.Path, out: pathlib.Path, *arguments) -> pathlib.Path:
  done = support.to_maxtext(source, out, *arguments)
  assert done.status == 0, done
  return out


def compare(maxtext, out: pathlib.Path, reference: pathlib.Path) -> dict:
  return json.loads(maxtext("maxtext_logits.py", out / "0" / "items", reference, run_configuration(out)).stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def smollm2_logits(smollm2, transformers, tmp_path_factory) -> pathlib.Path:
  out = tmp_path_factory.mktemp("smollm2-logits") / "logits.safetensors"
  transformers("hf_logits.py", smollm2, out)
  return out


@pytest.mark.parametrize("scan", [True, False])
def test_maxtext_speaks_like_transformers_with_a_trained_model(smollm2, smollm2_logits, maxtext, tmp_path, scan):
  result = compare(maxtext, convert(smollm2, tmp_path / "out", f"scan_layers={scan}"), smollm2_logits)
  assert result["scale"] > 20
  assert result["cosine"] >= 0.9999999
  assert result["argmax_agreement"] == 1
  assert result["max_abs_diff"] <= 2e-4, result


REDUCED = big_model.llama_config(layers=8, hidden=256, mlp=1024, heads=8, kv_heads=4, vocab=512, dtype="float32")


@pytest.fixture(scope="session")
def reduced(tmp_path_factory) -> pathlib.Path:
  """A small Llama in which every parameter is random, the norms too; matrices as transformers initializes them."""
  folder = tmp_path_factory.mktemp("reduced") / "hf"
  folder.mkdir()
  rng = np.random.default_rng(3)
  tensors = {name: rng.normal(1, 0.1, shape).astype(np.float32) if name.endswith("norm.weight") else
             rng.normal(0, 0.02, shape).astype(np.float32) for name, shape in big_model.tensor_shapes(REDUCED).items()}
  safetensors.numpy.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
  (folder / "config.json").write_text(json.dumps(REDUCED))
  return folder


@pytest.fixture(scope="session")
def reduced_logits(reduced, transformers) -> pathlib.Path:
  out = reduced.parent / "logits.safetensors"
  transformers("hf_logits.py", reduced, out)
  return out


@pytest.mark.parametrize("scan", [True, False])
def test_in_float32_the_logits_agree_to_the_last_digits(reduced, reduced_logits, maxtext, tmp_path, scan):
  result = compare(maxtext, convert(reduced, tmp_path / "out", f"scan_layers={scan}", "--save_dtype=float32"), reduced_logits)
  assert result["max_abs_diff"] <= 2e-6 and result["argmax_agreement"] == 1, result


def test_a_copy_with_gate_and_up_swapped_is_caught(reduced, reduced_logits, maxtext, tmp_path):
  tensors = safetensors.numpy.load_file(reduced / "model.safetensors")
  other = {"gate_proj": "up_proj", "up_proj": "gate_proj"}
  swapped = {".".join(other.get(part, part) for part in name.split(".")): array for name, array in tensors.items()}
  (tmp_path / "hf").mkdir()
  safetensors.numpy.save_file(swapped, tmp_path / "hf" / "model.safetensors", metadata={"format": "pt"})
  (tmp_path / "hf" / "config.json").write_text(json.dumps(REDUCED))
  result = compare(maxtext, convert(tmp_path / "hf", tmp_path / "out", "scan_layers=true", "--save_dtype=float32"), reduced_logits)
  assert result["cosine"] < 0.99, result


@pytest.mark.parametrize("tag", ["scan-float32", "unscan-float32"])
def test_the_golden_llama_runs_with_its_scaled_rotary_angles(maxtext, tmp_path, tag):
  golden = support.expected("llama3.1-8b", tag)
  out = convert(support.LLAMA / "hf", tmp_path / "out", *support.golden_arguments(golden))
  result = compare(maxtext, out, support.LLAMA / "logits.safetensors")
  # What MaxText reaches with its own checkpoint; without the scaling it is 8.7e-3.
  assert result["max_abs_diff"] <= 1e-5 and result["argmax_agreement"] == 1, result


@pytest.mark.parametrize("tag", ["scan-bfloat16", "unscan-bfloat16"])
def test_maxtext_carries_our_checkpoint_back(maxtext, tmp_path, tag):
  golden = support.expected("llama3.1-8b", tag)
  out = convert(support.LLAMA / "hf", tmp_path / "out", *support.golden_arguments(golden))
  settings = [a for a in golden["args"] if not a.startswith("--")]
  maxtext("maxtext_to_huggingface.py", "llama3.1-8b", out / "0" / "items", support.LLAMA / "hf", tmp_path / "back", "weight_dtype=bfloat16", *settings)
  back = support.load_tensors(tmp_path / "back")
  for name, want in support.expected_back("llama3.1-8b", tag, "bfloat16").items():
    assert stock.digest(back[name]) == want["sha256"], name


def test_maxtexts_own_converter_fails_on_one_device_with_lazy_tensors(maxtext, tmp_path):
  """The report that this project answers: the same command that works here."""
  golden = support.expected("llama3.1-8b", "scan-bfloat16")
  arguments = support.golden_arguments(golden, devices=1)
  failed = maxtext("maxtext_convert.py", "llama3.1-8b", support.LLAMA / "hf", tmp_path / "theirs", *arguments, check=False)
  assert failed.returncode != 0
  assert "NoEntryError" in failed.stderr and 'valid handler for the checkpointable: "items"' in failed.stderr, failed.stderr[-3000:]
  assert not (tmp_path / "theirs" / "0").exists()
  convert(support.LLAMA / "hf", tmp_path / "ours", *arguments)
  assert stock.differences(stock.v0_numpy(tmp_path / "ours" / "0"), golden["leaves"]) == []
