"""maxport.logits: forward passes, against those of transformers."""

import json
import pathlib

import ml_dtypes
import numpy as np
import pytest
from test_open import read_safetensors, write_safetensors

import maxport

GOLDENS = pathlib.Path(__file__).parents[1] / "data" / "goldens"
LLAMA = GOLDENS / "llama3.1-8b" / "hf"
PROMPT = "The capital of France is"


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
  return read_safetensors(GOLDENS / "llama3.1-8b" / "logits.safetensors")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> pathlib.Path:
  out = tmp_path_factory.mktemp("logits") / "maxtext"
  maxport.convert(LLAMA, out, scan_layers=True, save_dtype="float32")
  return out


@pytest.mark.parametrize("layout", ["huggingface", "maxtext"])
def test_one_model_s_logits_are_those_of_transformers(golden, checkpoint, layout):
  found = maxport.logits(LLAMA if layout == "huggingface" else checkpoint, ids=golden["input_ids"])
  wanted = golden["logits"].reshape(-1, golden["logits"].shape[-1])
  assert (found.dtype, found.shape) == (np.float32, wanted.shape)
  np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


def test_sequences_of_several_lengths_lie_one_after_another(golden):
  ids = golden["input_ids"].tolist()
  found = maxport.logits(LLAMA, ids=[ids[0], ids[1][:3]])
  np.testing.assert_allclose(found[:len(ids[0])], maxport.logits(LLAMA, ids=ids[0]), rtol=0, atol=1e-5)
  np.testing.assert_allclose(found[len(ids[0]):], maxport.logits(LLAMA, ids=ids[1][:3]), rtol=0, atol=1e-5)


def test_two_models_give_the_report_of_the_program(checkpoint):
  report = maxport.logits(checkpoint, LLAMA, ids=[1, 2, 3])
  (figures,) = report["comparisons"]
  assert (report["pass"], figures["tokens"], figures["argmax_agreement"]) == (True, 3, 1)
  assert figures["max_abs_difference"] <= 2e-5 * figures["largest_reference_logit"]


def test_golden_logits_are_compared_with():
  report = maxport.logits(LLAMA, golden_logits=GOLDENS / "llama3.1-8b" / "logits.safetensors")
  assert report["pass"]
  assert report["comparisons"][0]["max_kl"] < 1e-6


def test_a_model_that_differs_does_not_pass():
  ids, other = [1, 2, 3], GOLDENS / "qwen3-0.6b" / "hf"
  assert not maxport.logits(LLAMA, other, ids=ids)["pass"]
  assert maxport.logits(LLAMA, other, ids=ids, max_kl_div=100)["pass"]


def test_settings_and_switches_reach_the_program(checkpoint):
  plain = maxport.logits(checkpoint, ids=[1, 2, 3])
  assert np.abs(maxport.logits(checkpoint, ids=[1, 2, 3], rope_use_scale=False, threads=1) - plain).max() > 0
  gemma = GOLDENS / "gemma3-4b" / "hf"
  assert np.abs(maxport.logits(gemma, ids=[1, 2], like_maxtext=True) - maxport.logits(gemma, ids=[1, 2])).max() > 0


def test_a_prompt_is_encoded_by_the_tokenizer(tmp_path):
  vocabulary = {character: number for number, character in enumerate("abc", 1)}
  (tmp_path / "tokenizer.json").write_text(json.dumps({
      "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
      "decoder": None, "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}))
  np.testing.assert_array_equal(maxport.logits(LLAMA, prompt="cab", tokenizer=tmp_path),
                                maxport.logits(LLAMA, ids=[3, 1, 2]))


def test_logits_of_a_model_in_bfloat16_come_as_float32(tmp_path):
  tensors = read_safetensors(LLAMA / "model.safetensors")
  write_safetensors(tmp_path / "model.safetensors", {
      name: ("BF16", list(array.shape), array.astype(ml_dtypes.bfloat16).tobytes()) for name, array in tensors.items()})
  (tmp_path / "config.json").write_bytes((LLAMA / "config.json").read_bytes())
  assert maxport.logits(tmp_path, ids=[1]).dtype == np.float32


@pytest.mark.parametrize(("arguments", "message"), [
    ({}, "exactly one of"),
    ({"ids": [1], "prompt": "a"}, "exactly one of"),
    ({"ids": []}, "no token id"),
    ({"ids": [1.5]}, "ids: .*sequence of token ids"),
    ({"ids": [[1, 2], 3]}, "ids: .*sequence of token ids"),
    ({"ids": [-1]}, "no token id"),
    ({"ids": [999]}, "999 is not in the vocabulary"),
    ({"prompt": PROMPT}, "tokenizer"),
    ({"ids": [1], "max_kl_div": -1}, "max_kl_div"),
])
def test_what_makes_no_sense_is_an_invalid_argument(arguments, message):
  with pytest.raises(maxport.InvalidArgumentError, match=message):
    maxport.logits(LLAMA, **arguments)


def test_a_model_that_is_not_there_is_not_found(tmp_path):
  with pytest.raises(maxport.NotFoundError):
    maxport.logits(tmp_path / "nothing", ids=[1])
