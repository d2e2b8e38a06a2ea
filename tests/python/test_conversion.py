"""maxport.convert, verify and compare."""

import json
import logging
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import ml_dtypes
import numpy as np
import pytest
from test_open import read_safetensors, write_safetensors

import maxport
from maxport.__main__ import program

DATA = pathlib.Path(__file__).parents[1] / "data"
LLAMA = DATA / "goldens" / "llama3.1-8b" / "hf"


def large_model(folder: pathlib.Path, layers: int) -> pathlib.Path:
  """A Llama of about 8 MB a layer, whose weights are a sparse file of zeros."""
  hidden, inner, vocabulary = 512, 2048, 1024
  config = json.loads((LLAMA / "config.json").read_text())
  config.update(hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers, num_attention_heads=8,
                num_key_value_heads=8, head_dim=64, vocab_size=vocabulary)
  shapes = {"model.embed_tokens.weight": [vocabulary, hidden], "lm_head.weight": [vocabulary, hidden],
            "model.norm.weight": [hidden]}
  for layer in range(layers):
    prefix = f"model.layers.{layer}."
    for name in "qkvo":
      shapes[f"{prefix}self_attn.{name}_proj.weight"] = [hidden, hidden]
    shapes[prefix + "mlp.gate_proj.weight"] = shapes[prefix + "mlp.up_proj.weight"] = [inner, hidden]
    shapes[prefix + "mlp.down_proj.weight"] = [hidden, inner]
    for name in ("input", "post_attention"):
      shapes[f"{prefix}{name}_layernorm.weight"] = [hidden]
  header, at = {}, 0
  for name, shape in shapes.items():
    size = 2 * int(np.prod(shape))
    header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
    at += size
  folder.mkdir()
  (folder / "config.json").write_text(json.dumps(config))
  text = json.dumps(header).encode()
  with open(folder / "model.safetensors", "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    file.truncate(8 + len(text) + at)
  return folder


def test_there_and_back_again(tmp_path):
  report = maxport.convert(LLAMA, tmp_path / "maxtext", scan_layers=True, save_dtype="bfloat16")
  assert report["step_directory"] == str(tmp_path / "maxtext" / "0")
  assert report["leaves"] == len(maxport.plan(LLAMA))
  assert maxport.compare(maxport.plan(LLAMA), tmp_path / "maxtext").same
  back = maxport.convert(tmp_path / "maxtext" / "0" / "items", tmp_path / "hf", weight_dtype="bfloat16")
  assert back["folder"] == str(tmp_path / "hf")
  comparison = maxport.compare(LLAMA, tmp_path / "hf")
  # The query is scaled on the way in, which costs the last bit in bfloat16.
  assert {difference.name.split(".")[-2] for difference in comparison.differences} <= {"q_proj"}
  assert (comparison.only_in_first, comparison.only_in_second) == ([], [])


def test_progress_is_told_and_ends_with_one(tmp_path):
  shares = []
  maxport.convert(large_model(tmp_path / "model", 24), tmp_path / "out", progress=shares.append, threads=1)
  assert shares == sorted(shares)
  assert shares[-1] == 1.0


def test_the_program_s_talk_goes_to_the_logger(tmp_path, caplog):
  caplog.set_level(logging.INFO, logger="maxport")
  maxport.convert(LLAMA, tmp_path / "out", scan_layers=True)
  assert any("Conversion complete" in record.message for record in caplog.records)


def test_errors_of_the_program_are_exceptions(tmp_path):
  with pytest.raises(maxport.InvalidArgumentError, match="scan_layers"):
    maxport.convert(LLAMA, tmp_path / "out", scan_layer=True)
  maxport.convert(LLAMA, tmp_path / "out")
  with pytest.raises(maxport.MaxportError, match="overwrite"):
    maxport.convert(LLAMA, tmp_path / "out")
  maxport.convert(LLAMA, tmp_path / "out", ["--overwrite"])


def test_an_exception_of_the_progress_callable_stops_the_conversion_and_goes_on(tmp_path):
  def stop(share):
    raise KeyError("enough")

  with pytest.raises(KeyError, match="enough"):
    maxport.convert(large_model(tmp_path / "model", 160), tmp_path / "out", progress=stop, threads=1)
  assert not (tmp_path / "out" / "0").exists()
  maxport.convert(tmp_path / "model", tmp_path / "out")
  assert maxport.verify(tmp_path / "out", tmp_path / "model")["good"]


# Shells start what runs in the background with the signal ignored.
CONVERT = """
import signal, sys, maxport
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
  maxport.convert(sys.argv[1], sys.argv[2], threads=1)
except KeyboardInterrupt:
  print("stopped")
"""


def test_control_c_stops_a_conversion_and_it_can_be_resumed(tmp_path):
  large_model(tmp_path / "model", 96)
  process = subprocess.Popen([sys.executable, "-c", CONVERT, tmp_path / "model", tmp_path / "out"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
  while process.poll() is None and not list(tmp_path.glob("out/*tmp*")):
    time.sleep(0.01)
  process.send_signal(signal.SIGINT)
  output, errors = process.communicate()
  assert output.strip() == "stopped", errors
  assert not (tmp_path / "out" / "0").exists()
  maxport.convert(tmp_path / "model", tmp_path / "out")
  assert maxport.verify(tmp_path / "out", tmp_path / "model")["good"]


def test_other_threads_run_while_a_conversion_does(tmp_path):
  large_model(tmp_path / "model", 12)
  worker = threading.Thread(target=maxport.convert, args=(tmp_path / "model", tmp_path / "out"))
  worker.start()
  turns = 0
  while worker.is_alive():
    turns += 1
    worker.join(0.001)
  assert turns > 3
  assert (tmp_path / "out" / "0" / "items").is_dir()


def test_verify_finds_a_flipped_bit(tmp_path):
  maxport.convert(LLAMA, tmp_path / "out")
  assert maxport.verify(tmp_path / "out")["good"]
  data = max((tmp_path / "out").rglob("d/*"), key=lambda file: file.stat().st_size)
  content = bytearray(data.read_bytes())
  content[len(content) // 3] ^= 4
  data.write_bytes(content)
  report = maxport.verify(tmp_path / "out")
  assert not report["good"]
  assert report["damages"]


def checkpoint(file: pathlib.Path, **arrays) -> pathlib.Path:
  names = {"float32": "F32", "bfloat16": "BF16", "int64": "I64"}
  write_safetensors(file, {name: (names[array.dtype.name], list(array.shape), array.tobytes())
                           for name, array in arrays.items()})
  return file


def test_compare_says_what_differs_and_how_much(tmp_path):
  base = np.arange(12, dtype=np.float32).reshape(3, 4)
  other = base.copy()
  other[1, 2] += 0.5
  nan = base.copy()
  nan[0, 0] = np.nan
  first = checkpoint(tmp_path / "a.safetensors", same=base, values=base, nan=nan, alone=nan, shape=base, dtype=base,
                     big=np.array([2**60]), mine=base)
  second = checkpoint(tmp_path / "b.safetensors", same=base, values=other, nan=nan, alone=base, shape=base.T.copy(),
                      dtype=base.astype(ml_dtypes.bfloat16), big=np.array([2**60 + 1]), yours=base)
  comparison = maxport.compare(first, second)
  assert not comparison.same
  assert comparison.equal == ["nan", "same"]
  assert (comparison.only_in_first, comparison.only_in_second) == (["mine"], ["yours"])
  found = {difference.name: difference for difference in comparison.differences}
  assert {name: difference.what for name, difference in found.items()} == {
      "values": "values", "alone": "values", "shape": "shape", "dtype": "dtype", "big": "values"}
  assert (found["values"].first, found["values"].second, found["values"].max_abs) == ("1 differ", "of 12", 0.5)
  assert np.isnan(found["alone"].max_abs)
  assert "dtype" in maxport.compare(first, second, ignore_dtype=True).equal


def test_a_nan_beside_a_difference_does_not_count(tmp_path):
  one, two = np.array([np.nan, 1, 2], np.float32), np.array([np.nan, 1, 5], np.float32)
  (difference,) = maxport.compare(checkpoint(tmp_path / "a.safetensors", a=one),
                                  checkpoint(tmp_path / "b.safetensors", a=two)).differences
  assert (difference.first, difference.max_abs) == ("1 differ", 3.0)


def test_compare_works_in_pieces(tmp_path, monkeypatch):
  from maxport import _comparison

  monkeypatch.setattr(_comparison, "_PIECE", 24)
  array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
  first = checkpoint(tmp_path / "a.safetensors", a=array, s=np.float32(3).reshape(()))
  for position in np.ndindex(array.shape):
    changed = array.copy()
    changed[position] += 1
    second = checkpoint(tmp_path / "b.safetensors", a=changed, s=np.float32(3).reshape(()))
    (difference,) = maxport.compare(first, second).differences
    assert (difference.first, difference.max_abs) == ("1 differ", 1.0)


def test_verify_derives_every_element_from_the_source(tmp_path):
  maxport.convert(LLAMA, tmp_path / "out")
  shutil.copytree(LLAMA, tmp_path / "other")
  file = tmp_path / "other" / "model.safetensors"
  content = bytearray(file.read_bytes())
  content[-1] ^= 1
  file.write_bytes(content)
  alone, same, other = (maxport.verify(tmp_path / "out", source) for source in (None, LLAMA, tmp_path / "other"))
  assert (alone["good"], alone["source_compared"]) == (True, False)
  assert (same["good"], same["source_compared"]) == (True, True)
  assert not other["good"] and other["damages"]


def test_settings_that_are_none_are_left_out():
  assert dict(maxport.plan(LLAMA, scan_layers=None).steps) == maxport.plan(LLAMA).steps


@pytest.fixture(scope="module")
def layouts(tmp_path_factory) -> dict[str, pathlib.Path]:
  """The small Llama in all forms."""
  folder = tmp_path_factory.mktemp("layouts")
  for name, scanned in (("scanned", True), ("unscanned", False)):
    maxport.convert(LLAMA, folder / name, scan_layers=scanned, save_dtype="bfloat16")
  return {"huggingface": LLAMA, "scanned": folder / "scanned", "unscanned": folder / "unscanned"}


@pytest.mark.parametrize(("first", "second", "tensor"), [
    ("huggingface", "scanned", "decoder.layers.mlp.wi_0.kernel"),
    ("unscanned", "huggingface", "decoder.layers_1.mlp.wi_0.kernel"),
    ("scanned", "unscanned", "model.layers.1.mlp.gate_proj.weight"),
])
def test_one_model_in_two_forms_is_the_same(layouts, first, second, tensor):
  comparison = maxport.compare(layouts[first], maxport.open(layouts[second]))
  assert comparison.same
  assert tensor in comparison.equal


def test_a_changed_weight_is_found_across_forms(layouts, tmp_path):
  tensors = read_safetensors(LLAMA / "model.safetensors")
  names = {"float32": "F32", "bfloat16": "BF16"}
  changed = tensors["model.norm.weight"].copy()
  changed[3] += 2
  tensors["model.norm.weight"] = changed
  tensors["model.layers.0.input_layernorm.weight"] = np.full_like(changed, np.nan)
  write_safetensors(tmp_path / "model.safetensors", {
      name: (names[array.dtype.name], list(array.shape), array.tobytes()) for name, array in tensors.items()})
  (tmp_path / "config.json").write_bytes((LLAMA / "config.json").read_bytes())
  comparison = maxport.compare(tmp_path, layouts["unscanned"])
  found = {difference.name: difference for difference in comparison.differences}
  assert set(found) == {"decoder.decoder_norm.scale", "decoder.layers_0.pre_self_attention_layer_norm.scale"}
  norm = found["decoder.decoder_norm.scale"]
  assert (norm.what, norm.first, norm.second) == ("values", "1 differ", "of 80")
  assert norm.max_abs == float(changed[3]) - float(maxport.open(LLAMA)["model.norm.weight"][3])
  assert np.isnan(found["decoder.layers_0.pre_self_attention_layer_norm.scale"].max_abs)
  assert len(comparison.equal) == 28


def test_other_dtypes_across_forms_differ_unless_ignored(layouts, tmp_path):
  maxport.convert(LLAMA, tmp_path / "wide", scan_layers=True, save_dtype="float32")
  comparison = maxport.compare(tmp_path / "wide", layouts["unscanned"])
  assert comparison.equal == []
  assert {(difference.what, difference.first, difference.second) for difference in comparison.differences} == {
      ("dtype", "float32", "bfloat16")}
  # The queries are scaled in float32 here and rounded there.
  values = maxport.compare(tmp_path / "wide", layouts["unscanned"], ignore_dtype=True).differences
  assert {difference.what for difference in values} <= {"values"}
  assert all("q_proj" in difference.name for difference in values)


def test_a_checkpoint_that_does_not_tell_its_model_is_compared_with_the_help_of_settings(layouts, tmp_path):
  for name in ("scanned", "unscanned"):
    shutil.copytree(layouts[name], tmp_path / name)
    (tmp_path / name / "0" / "maxport.json").unlink()
  alone = maxport.compare(tmp_path / "scanned", tmp_path / "unscanned")
  assert not alone.same and alone.only_in_first and alone.only_in_second
  assert maxport.compare(tmp_path / "scanned", tmp_path / "unscanned", hf_model_path=LLAMA).same
  with pytest.raises(maxport.MaxportError, match="nothing"):
    maxport.compare(tmp_path / "scanned", tmp_path / "unscanned", hf_model_path=tmp_path / "nothing")


def test_trees_that_are_no_models_are_compared_by_name():
  samples = DATA / "orbax_samples"
  comparison = maxport.compare(samples / "v0_pytree_mixed", samples / "v0_pytree_odd_leaves")
  assert set(comparison.only_in_first) <= set(maxport.open(samples / "v0_pytree_mixed"))
  assert comparison.only_in_second
  assert maxport.compare(samples / "v0_pytree_mixed", samples / "v0_pytree_mixed_plain_zarr2").same


def test_inspect_tells_what_the_program_tells(layouts):
  found = maxport.inspect(layouts["scanned"])
  run = subprocess.run([program(), "inspect", layouts["scanned"], "--json"], capture_output=True, text=True, check=True)
  assert found == json.loads(run.stdout)
  assert (found["family"], found["bytes"]) == ("llama", maxport.open(layouts["scanned"]).nbytes)
  with pytest.raises(maxport.NotFoundError):
    maxport.inspect(DATA / "nothing")


def test_the_modules_are_the_commands(tmp_path):
  for module, words in [("maxport", ["--version"]), ("maxport.to_maxtext", ["--help"]), ("maxport.to_huggingface", ["--help"])]:
    run = subprocess.run([sys.executable, "-m", module, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
  command = [sys.executable, "-m", "maxport.to_maxtext", "base.yml", f"base_output_directory={tmp_path}",
             f"--hf_model_path={LLAMA}", "scan_layers=false", "--lazy_load_tensors=true"]
  assert subprocess.run(command, capture_output=True, check=False).returncode == 0
  assert maxport.open(tmp_path).metadata["scan_layers"] is False
  wrong = subprocess.run([sys.executable, "-m", "maxport.to_maxtext", "no_such_key=1"], capture_output=True, check=False)
  assert wrong.returncode == 2
