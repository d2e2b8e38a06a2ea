"""DeepSeek's layers that predict further tokens (mtp_num_layers): where they lie in MaxText, and the way back.

No MaxText release converts them; names and shapes in tests/data/prediction_layers are those of the parameters that its
model makes for itself."""
import json

import ml_dtypes
import numpy as np
import pytest

import stock
import support

HEAD = {"mtp_1_embedding_norm.scale": "enorm.weight", "mtp_1_hidden_state_norm.scale": "hnorm.weight",
        "mtp_1_projection.kernel": "eh_proj.weight", "mtp_1_final_norm.scale": "shared_head.norm.weight"}


def write_model(folder, family: str, repeats: bool = True) -> tuple[dict, int]:
  """The golden with one more layer, a copy of the last with other numbers, that predicts the token after next."""
  source = support.GOLDENS / family / "hf"
  config = json.loads((source / "config.json").read_text())
  tensors = {name: array for name, array in support.load_tensors(source).items()}
  count = config["num_hidden_layers"]
  tensors = {n: a for n, a in tensors.items() if not n.startswith(f"model.layers.{count}.")}
  config["num_nextn_predict_layers"] = 1
  rng = np.random.default_rng(7)

  def random(shape, like):
    return rng.standard_normal(shape).astype(np.float32).astype(like)

  last = f"model.layers.{count - 1}."
  new = f"model.layers.{count}."
  for name, array in list(tensors.items()):
    if name.startswith(last):
      tensors[new + name.removeprefix(last)] = random(array.shape, array.dtype)
  emb = config["hidden_size"]
  for part in ("enorm", "hnorm", "shared_head.norm"):
    tensors[f"{new}{part}.weight"] = random((emb,), ml_dtypes.bfloat16)
  tensors[f"{new}eh_proj.weight"] = random((emb, 2 * emb), ml_dtypes.bfloat16)
  if repeats:
    tensors[f"{new}embed_tokens.weight"] = tensors["model.embed_tokens.weight"]
    tensors[f"{new}shared_head.head.weight"] = tensors["lm_head.weight"]
  folder.mkdir()
  (folder / "config.json").write_text(json.dumps(config))
  support.save_tensors(folder / "model.safetensors", tensors, {"format": "pt"})
  return tensors, count


@pytest.mark.parametrize("family", ["deepseek3-671b", "deepseek3.2-671b"])
@pytest.mark.parametrize("scan", ["true", "false"])
def test_they_go_to_maxtexts_places_and_come_back_with_what_files_repeat(tmp_path, family, scan):
  tensors, count = write_model(tmp_path / "hf", family)
  done = support.to_maxtext(tmp_path / "hf", tmp_path / "out", f"scan_layers={scan}", "mtp_num_layers=1")
  assert done.status == 0, done
  leaves = stock.leaves(stock.v0_numpy(tmp_path / "out" / "0"))
  extra = {name: leaf for name, leaf in leaves.items() if ".mtp_block." in name}
  for leaf, name in HEAD.items():
    want = tensors[f"model.layers.{count}.{name}"]
    (found,) = [a for n, a in extra.items() if n.endswith("mtp_layer_1." + leaf)]
    np.testing.assert_array_equal(found, want.T if want.ndim == 2 else want, err_msg=leaf)
  model = json.loads((support.DATA / "prediction_layers" / f"{family}.json").read_text())
  assert {name: list(a.shape) for name, a in extra.items()} == model
  done = support.run("to_huggingface", f"load_parameters_path={tmp_path}/out/0/items", f"base_output_directory={tmp_path}/back",
                     "weight_dtype=bfloat16", "mtp_num_layers=1")
  assert done.status == 0, done
  back = support.load_tensors(tmp_path / "back")
  assert set(back) == set(tensors)
  for name, array in tensors.items():
    np.testing.assert_array_equal(back[name], array.astype(ml_dtypes.bfloat16), err_msg=name)


def test_a_repeated_embedding_that_differs_is_refused(tmp_path):
  tensors, count = write_model(tmp_path / "hf", "deepseek3-671b")
  name = f"model.layers.{count}.embed_tokens.weight"
  tensors[name] = tensors[name] + ml_dtypes.bfloat16(1)
  support.save_tensors(tmp_path / "hf" / "model.safetensors", tensors, {"format": "pt"})
  done = support.to_maxtext(tmp_path / "hf", tmp_path / "out", "mtp_num_layers=1")
  assert done.status == support.INVALID_ARGUMENT and name in done.err and support.nothing_published(tmp_path / "out"), done


def test_without_the_setting_they_are_left_out_by_name(tmp_path):
  tensors, count = write_model(tmp_path / "hf", "deepseek3-671b", repeats=False)
  done = support.to_maxtext(tmp_path / "hf", tmp_path / "out")
  assert done.status == 0 and f"model.layers.{count}." in support.run("to_maxtext", f"base_output_directory={tmp_path}/dry",
                                                                    f"--hf_model_path={tmp_path}/hf", "--dry_run").text, done
