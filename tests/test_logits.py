"""`maxport logits`: every family from its Hugging Face folder and from checkpoints of its own making, against transformers."""
import functools
import json
import pathlib

import numpy as np
import pytest
import safetensors.numpy

import support

# Families by the largest difference that is allowed, as a share of the largest |logit|.
FAMILIES = {
    "llama3.1-8b": 2e-5,
    "qwen2.5-1.5b": 2e-5,
    "qwen3-0.6b": 2e-5,
    "gemma2-2b": 2e-5,
    "olmo3-7b": 2e-5,
    "qwen3-vl-2b": 2e-5,
    "qwen3-omni-30b-a3b": 2e-5,
    "mixtral-8x7b": 2e-5,
    "qwen3-30b-a3b": 2e-5,
    "gpt-oss-20b": 2e-5,
    "deepseek2-16b": 2e-5,
    "deepseek3-671b": 2e-5,
    "deepseek3.2-671b": 2e-5,
    "gemma4-26b": 2e-5,
    "gemma4-e2b": 2e-5,
    "qwen3-next-80b-a3b": 1e-4,
    "qwen3.5-35b-a3b": 1e-4,
}
UNSCANNED_ONLY = {"gemma4-e2b", "qwen3-vl-2b", "qwen3-omni-30b-a3b"}
LAYOUTS = ("huggingface", "scanned", "unscanned")
CASES = [(family, layout) for family in FAMILIES for layout in LAYOUTS if not (layout == "scanned" and family in UNSCANNED_ONLY)]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
  """The path of a family in a layout; checkpoints are made when first asked for."""

  @functools.cache
  def path(family: str, layout: str) -> pathlib.Path:
    source = support.GOLDENS / family / "hf"
    if layout == "huggingface":
      return source
    out = tmp_path_factory.mktemp("logits") / f"{family}-{layout}"
    done = support.to_maxtext(source, out, f"scan_layers={str(layout == 'scanned').lower()}", "--save_dtype=float32")
    assert done.status == 0, done
    return out / "0"

  return path


def golden(family: str) -> pathlib.Path:
  return support.GOLDENS / family / "logits.safetensors"


def report(*arguments, status: int = 0) -> dict:
  done = support.run("logits", *arguments, "--json")
  assert done.status == status, done
  return json.loads(done.out)


@pytest.mark.parametrize("family,layout", CASES)
def test_a_familys_logits_are_those_of_transformers(models, family, layout):
  found, = report(models(family, layout), f"--golden_logits={golden(family)}")["comparisons"]
  assert found["tokens"] == 24
  assert found["max_abs_difference"] <= FAMILIES[family] * found["largest_reference_logit"]
  assert found["argmax_agreement"] == 1
  assert found["max_kl"] < 1e-6
  assert found["cosine"] == pytest.approx(1, abs=1e-8)
  for sequence in found["sequences"]:
    assert sequence["overlap_count"] == "10/10" and sequence["jaccard_similarity"] == 1


@pytest.mark.parametrize("layout", ("scanned", "unscanned"))
def test_gemma3_agrees_once_both_round_as_maxtext_does(models, layout):
  ours, theirs = models("gemma3-4b", layout), models("gemma3-4b", "huggingface")
  found, = report(theirs, f"--golden_logits={golden('gemma3-4b')}")["comparisons"]
  assert found["max_abs_difference"] <= 2e-5 * found["largest_reference_logit"]
  plain, = report(ours, f"--golden_logits={golden('gemma3-4b')}")["comparisons"]
  assert 1e-4 < plain["max_abs_difference"] / plain["largest_reference_logit"] < 3e-3
  assert plain["argmax_agreement"] == 1
  ids = f"--input={golden('gemma3-4b')}"
  rounded, = report(ours, theirs, ids, "--like_maxtext")["comparisons"]
  assert rounded["max_abs_difference"] <= 2e-5 * rounded["largest_reference_logit"]


# What MaxText 0.2.5 itself computes from such checkpoints differs from transformers by as much: 7.3e-3 and 1.0e-2.
@pytest.mark.parametrize("family,difference", [("gemma2-2b", 7.3e-3), ("gemma3-4b", 1.05e-2)])
def test_the_rounding_of_tied_tables_is_maxtexts(models, family, difference):
  found, = report(models(family, "scanned"), f"--golden_logits={golden(family)}", "--like_maxtext")["comparisons"]
  assert found["max_abs_difference"] == pytest.approx(difference, rel=0.05)
  assert found["argmax_agreement"] == 1


def test_two_layouts_are_compared_with_each_other(models):
  found, = report(models("qwen3-0.6b", "scanned"), models("qwen3-0.6b", "huggingface"), "--ids=1,2,3,4;5,6,7")["comparisons"]
  assert found["tokens"] == 7
  assert found["max_abs_difference"] <= 2e-5 * found["largest_reference_logit"]
  assert len(found["sequences"]) == 2 and len(found["kl"]) == 7


def test_another_models_logits_end_with_status_1(models):
  done = support.run("logits", models("llama3.1-8b", "huggingface"), models("qwen3-0.6b", "huggingface"), "--ids=1,2,3")
  assert done.status == 1, done
  assert "FAIL" in done.out
  lenient = support.run("logits", models("llama3.1-8b", "huggingface"), models("qwen3-0.6b", "huggingface"), "--ids=1,2,3", "--max_kl_div=100")
  assert lenient.status == 0, lenient
  assert "PASS" in lenient.out


def changed_copy(folder: pathlib.Path, name: str, change) -> pathlib.Path:
  """The llama of the goldens with one tensor changed."""
  source = support.LLAMA / "hf"
  folder.mkdir()
  (folder / "config.json").write_bytes((source / "config.json").read_bytes())
  tensors = support.load_tensors(source)
  tensors[name] = change(tensors[name])
  support.save_tensors(folder / "model.safetensors", tensors)
  return folder


def test_a_halved_query_is_seen(tmp_path):
  changed = changed_copy(tmp_path / "model", "model.layers.0.self_attn.q_proj.weight", lambda t: (t.astype(np.float32) / 2).astype(t.dtype))
  found, = report(changed, f"--golden_logits={golden('llama3.1-8b')}", "--max_kl_div=1")["comparisons"]
  assert found["max_abs_difference"] > 1e-3 * found["largest_reference_logit"]


def test_a_wrong_rotary_setting_of_a_checkpoint_is_seen(models):
  found, = report(models("llama3.1-8b", "scanned"), f"--golden_logits={golden('llama3.1-8b')}", "rope_use_scale=false",
                  "--max_kl_div=1")["comparisons"]
  assert found["max_abs_difference"] > 1e-4 * found["largest_reference_logit"]


def test_golden_lines_of_maxtexts_checker_are_read(models, tmp_path):
  reference = safetensors.numpy.load_file(golden("llama3.1-8b"))
  lines = [json.dumps({"prompt": "", "tokens": ids.tolist(), "logits": logits.tolist()})
           for ids, logits in zip(reference["input_ids"], reference["logits"])]
  file = tmp_path / "golden.jsonl"
  file.write_text("\n".join(lines))
  found, = report(models("llama3.1-8b", "scanned"), f"--golden_logits_path={file}")["comparisons"]
  assert found["tokens"] == 24 and found["max_kl"] < 1e-6


def test_one_model_alone_tells_what_comes_next(models):
  found = report(models("llama3.1-8b", "huggingface"), f"--input={golden('llama3.1-8b')}")
  reference = safetensors.numpy.load_file(golden("llama3.1-8b"))["logits"]
  for sequence, logits in zip(found["sequences"], reference):
    assert sequence["top"][0]["id"] == int(logits[-1].argmax())


@pytest.mark.parametrize("ids", ("1,2,3,4;5,6,7", "1,2;3,4"))
def test_logits_that_are_written_serve_as_golden_ones(models, tmp_path, ids):
  file = tmp_path / "logits.safetensors"
  report(models("llama3.1-8b", "huggingface"), f"--ids={ids}", f"--output={file}")
  assert list(tmp_path.iterdir()) == [file]
  found, = report(models("llama3.1-8b", "huggingface"), f"--golden_logits={file}")["comparisons"]
  assert found["tokens"] == len(ids.replace(";", ",").split(","))
  assert found["max_abs_difference"] == 0
  assert len(found["sequences"]) == 2
  again = support.run("logits", models("llama3.1-8b", "huggingface"), "--ids=1", f"--output={file}")
  assert again.status == support.INVALID_ARGUMENT and "there already" in again.err


@pytest.mark.parametrize("arguments,text", [
    ((), "which model"),
    (("MODEL",), "--ids"),
    (("MODEL", "--ids=1", "--input=x"), "exactly one"),
    (("MODEL", "--ids=one"), "token id"),
    (("MODEL", "--ids=160"), "160"),
    (("MODEL", "--ids=1", "--max_kl_div=no"), "max_kl_div"),
    (("MODEL", "--ids=1", "--nonsense"), "nonsense"),
    (("MODEL", "--ids=1", "--output=a.npy"), ".safetensors"),
    (("MODEL", "MODEL", "MODEL", "--ids=1"), "two can be compared"),
])
def test_what_makes_no_sense_is_said(arguments, text):
  model = str(support.LLAMA / "hf")
  done = support.run("logits", *[model if a == "MODEL" else a for a in arguments])
  assert done.status == support.INVALID_ARGUMENT, done
  assert text in done.err


def test_help_starts_at_once():
  done = support.run("logits", "--help")
  assert done.status == 0 and "--golden_logits" in done.out
