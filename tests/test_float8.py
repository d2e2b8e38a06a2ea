"""Qwen3.5 with float8 kernels and block scales, both ways. No scale is ever applied: kernels and scales are carried as
they are, like MaxText does, whose digests for this very source are in the golden."""
import json
import struct

import ml_dtypes
import numpy as np
import pytest

import float8
import stock
import support

_TYPES = {"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F32": np.float32}


def load(folder) -> dict[str, np.ndarray]:
  """safetensors.numpy has no float8."""
  tensors = {}
  for file in sorted(folder.glob("*.safetensors")):
    data = file.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:start]).items():
      if name == "__metadata__":
        continue
      begin, end = entry["data_offsets"]
      tensors[name] = np.frombuffer(data[start + begin:start + end], _TYPES[entry["dtype"]]).reshape(entry["shape"])
  return tensors


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  return float8.write_model(tmp_path_factory.mktemp("float8") / "hf")


@pytest.mark.parametrize("tag", ["scan", "unscan"])
def test_the_checkpoint_is_what_maxtext_makes_of_the_same_source(model, tmp_path, tag):
  golden = json.loads((support.DATA / "float8" / f"{tag}.json").read_text())
  done = support.to_maxtext(model, tmp_path / "out", *support.golden_arguments(golden))
  assert done.status == 0, done
  for way in (stock.v0_numpy, stock.v1_load):
    assert not stock.differences(way(tmp_path / "out" / "0"), golden["leaves"]), way


@pytest.mark.parametrize("scan", ["true", "false"])
@pytest.mark.parametrize("save_dtype", ["float8_e4m3fn", "bfloat16", "float32"])
def test_kernels_and_scales_come_back_bit_for_bit(model, tmp_path, scan, save_dtype):
  """From bfloat16 and float32 checkpoints too: every float8 number is one of theirs."""
  done = support.to_maxtext(model, tmp_path / "out", f"scan_layers={scan}", f"--save_dtype={save_dtype}")
  assert done.status == 0, done
  done = support.run("to_huggingface", f"load_parameters_path={tmp_path}/out/0/items", f"base_output_directory={tmp_path}/back")
  assert done.status == 0, done
  source, back = load(model), load(tmp_path / "back")
  text = {name for name in source if not name.startswith("model.visual.")}
  assert set(back) == text
  for name in text:
    kernel = source[name].dtype == ml_dtypes.float8_e4m3fn
    if kernel or save_dtype != "float32":
      assert back[name].dtype == source[name].dtype, name
    np.testing.assert_array_equal(back[name].astype(np.float32), source[name].astype(np.float32), err_msg=name)
  config = json.loads((tmp_path / "back" / "config.json").read_text())
  assert config == json.loads((model / "config.json").read_text())


def test_another_weight_dtype_is_refused_because_scales_are_not_applied(model, tmp_path):
  done = support.to_maxtext(model, tmp_path / "out", "weight_dtype=bfloat16")
  assert done.status == support.UNSUPPORTED and "block scales" in done.err and support.nothing_published(tmp_path / "out"), done
  assert support.to_maxtext(model, tmp_path / "out").status == 0
  done = support.run("to_huggingface", f"load_parameters_path={tmp_path}/out/0/items", f"base_output_directory={tmp_path}/back",
                     "weight_dtype=bfloat16")
  assert done.status == support.UNSUPPORTED and "block scales" in done.err and not (tmp_path / "back").exists(), done
  plain = support.to_maxtext(float8.SOURCE / "hf", tmp_path / "plain", "weight_dtype=float8_e4m3fn")
  assert plain.status == support.UNSUPPORTED and "float8" in plain.err and support.nothing_published(tmp_path / "plain"), plain


def test_a_scale_that_is_missing_is_named(model, tmp_path):
  folder = tmp_path / "hf"
  folder.mkdir()
  (folder / "config.json").write_bytes((model / "config.json").read_bytes())
  tensors = load(model)
  lost = "model.language_model.layers.2.mlp.experts.3.up_proj.weight_scale_inv"
  del tensors[lost]
  support.save_tensors(folder / "model.safetensors", tensors, {"format": "pt"})
  done = support.to_maxtext(folder, tmp_path / "out")
  assert done.status == support.NOT_FOUND and lost in done.err and support.nothing_published(tmp_path / "out"), done


def test_the_run_configuration_tells_maxtext_about_the_blocks(model, tmp_path):
  assert support.to_maxtext(model, tmp_path / "out").status == 0
  text = (tmp_path / "out" / "maxtext.yml").read_text()
  assert "weight_dtype: float8_e4m3fn" in text and f"weight_block_size: {float8.BLOCK}" in text
