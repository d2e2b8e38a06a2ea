"""Spellings and layouts of sources and of MaxText trees: the same weights give the same result, whatever the spelling
(reports R21 to R26 and R35 to R40 of people who convert)."""
import json
import shutil

import ml_dtypes
import numpy as np
import pytest

import stock
import support

SAMPLES = support.DATA / "orbax_samples"


def converted(tmp_path, name: str, tensors: dict, config: dict, *arguments) -> dict[str, str]:
  """Digests of the leaves of a model that is written here."""
  folder = tmp_path / f"hf-{name}"
  folder.mkdir()
  (folder / "config.json").write_text(json.dumps(config))
  support.save_tensors(folder / "model.safetensors", tensors, {"format": "pt"})
  done = support.to_maxtext(folder, tmp_path / name, *arguments)
  assert done.status == 0, done
  return {leaf: stock.digest(array) for leaf, array in stock.leaves(stock.v0_numpy(tmp_path / name / "0")).items()}


def refused(tmp_path, tensors: dict, config: dict, *arguments) -> support.Run:
  folder = tmp_path / "refused"
  folder.mkdir()
  (folder / "config.json").write_text(json.dumps(config))
  support.save_tensors(folder / "model.safetensors", tensors, {"format": "pt"})
  done = support.to_maxtext(folder, tmp_path / "none", *arguments)
  assert done.status != 0 and support.nothing_published(tmp_path / "none"), done
  return done


def respelt(tensors: dict, prefix: str) -> dict:
  return {prefix + name.removeprefix("model.") if name.startswith("model.") else name: array for name, array in tensors.items()}


def test_r21_all_prefixes_mean_the_same_model(tmp_path):
  tensors = support.tiny_tensors()
  want = converted(tmp_path, "plain", tensors, support.TINY, "scan_layers=true")
  for n, prefix in enumerate(["", "language_model.model.", "model.language_model."]):
    assert converted(tmp_path, f"other-{n}", respelt(tensors, prefix), support.TINY, "scan_layers=true") == want, prefix


def test_r21_the_spelling_is_reported_and_a_mixture_is_refused(tmp_path):
  tensors = support.tiny_tensors()
  folder = support.Model(tmp_path / "hf")
  folder.tensors = respelt(tensors, "language_model.model.")
  folder.place = dict.fromkeys(folder.tensors, 0)
  done = support.to_maxtext(folder.write(), tmp_path / "out")
  assert done.status == 0 and "language_model.model." in done.err, done
  mixed = tensors | {"language_model.model.layers.0.input_layernorm.weight": tensors["model.layers.0.input_layernorm.weight"]}
  assert "two ways" in refused(tmp_path, mixed, support.TINY).err


def moe() -> tuple[dict, dict]:
  folder = support.GOLDENS / "qwen3-30b-a3b" / "hf"
  return support.load_tensors(folder), json.loads((folder / "config.json").read_text())


def fused(tensors: dict) -> dict:
  """Per-expert tensors as transformers 5 holds them: gate and up of all experts in one, [experts, gate then up, hidden]."""
  out, experts = {}, {}
  for name, array in tensors.items():
    if ".mlp.experts." not in name:
      out[name] = array
      continue
    layer, rest = name.split(".mlp.experts.")
    expert, part = rest.split(".")[:2]
    experts.setdefault(layer, {}).setdefault(part, {})[int(expert)] = array
  for layer, parts in experts.items():
    stack = {part: np.stack([arrays[e] for e in sorted(arrays)]) for part, arrays in parts.items()}
    out[f"{layer}.mlp.experts.gate_up_proj"] = np.concatenate([stack["gate_proj"], stack["up_proj"]], axis=1)
    out[f"{layer}.mlp.experts.down_proj"] = stack["down_proj"]
  return out


@pytest.mark.parametrize("scan", ["true", "false"])
def test_r24_fused_and_single_experts_give_the_same_leaves(tmp_path, scan):
  tensors, config = moe()
  if "model.layers.0.mlp.experts.gate_up_proj" in tensors:
    pytest.fail("the golden is expected to hold experts one by one")
  want = converted(tmp_path, "single", tensors, config, f"scan_layers={scan}")
  assert converted(tmp_path, "fused", fused(tensors), config, f"scan_layers={scan}") == want


def test_r25_unknown_names_of_experts_are_listed(tmp_path):
  tensors, config = moe()
  renamed = {name.replace(".gate_proj.", ".wX.") if ".experts." in name else name: array for name, array in tensors.items()}
  done = refused(tmp_path, renamed, config)
  assert "experts.0.gate_proj.weight" in done.err and "missing" in done.err


def test_r26_gate_and_up_land_where_the_reference_puts_them(tmp_path):
  tensors, config = moe()
  both = fused(tensors)
  for name, array in both.items():
    if name.endswith("gate_up_proj"):
      half = array.shape[1] // 2
      array[:, :half], array[:, half:] = 1, 2
  converted(tmp_path, "halves", both, config, "scan_layers=true")
  leaves = stock.leaves(stock.v0_numpy(tmp_path / "halves" / "0"))
  for leaf, array in leaves.items():
    if leaf.endswith("moe_block.wi_0"):
      assert (np.asarray(array, np.float32) == 1).all()
    if leaf.endswith("moe_block.wi_1"):
      assert (np.asarray(array, np.float32) == 2).all()


def test_r23_surplus_tensors_are_refused_and_dropped_on_demand(tmp_path):
  tensors = support.tiny_tensors() | {"model.layers.0.self_attn.extra.weight": np.zeros((2, 2), ml_dtypes.bfloat16)}
  done = refused(tmp_path, tensors, support.TINY)
  assert "extra.weight" in done.err and "--drop_unused" in done.err
  converted(tmp_path, "dropped", tensors, support.TINY, "--drop_unused")


def back(tmp_path, checkpoint, name: str, *arguments) -> dict[str, np.ndarray]:
  out = tmp_path / name
  done = support.run("to_huggingface", f"load_parameters_path={checkpoint}", f"base_output_directory={out}", "weight_dtype=bfloat16",
                     f"--hf_model_path={SAMPLES / 'hf_tiny_llama'}", *arguments)
  assert done.status == 0, done
  return support.load_tensors(out)


def sample_path(name: str):
  expected = json.loads((SAMPLES / name / "expected.json").read_text())
  return SAMPLES / name / expected["item_path"]


@pytest.mark.parametrize("name", ["mt_ocdbt_zarr3_dev16_bfloat16", "mt_plain_zarr2_dev2_bfloat16", "nnx_sft", "nnx_rl_base",
                                  "nnx_layerlist_unscanned", "linen_single_params"])
def test_r35_r36_every_tree_layout_exports_the_same_tensors(tmp_path, name):
  source = support.load_tensors(SAMPLES / "hf_tiny_llama")
  got = back(tmp_path, sample_path(name), "back")
  assert sorted(got) == sorted(source)
  for tensor, array in source.items():
    if "q_proj" in tensor:  # scaled by a factor that is no power of two
      np.testing.assert_allclose(got[tensor].astype(np.float32), array.astype(np.float32), rtol=2**-7)
    else:
      assert np.array_equal(got[tensor].view(np.uint16), array.astype(ml_dtypes.bfloat16).view(np.uint16)), tensor


@pytest.mark.parametrize("scan", ["true", "false"])
def test_r38_scan_layers_is_recorded_found_and_defended(tmp_path, scan):
  hf = SAMPLES / "hf_tiny_llama"
  assert support.to_maxtext(hf, tmp_path / "out", f"scan_layers={scan}").status == 0
  metadata = json.loads((tmp_path / "out" / "0" / "_CHECKPOINT_METADATA").read_text())
  assert metadata["custom_metadata"]["scan_layers"] is (scan == "true")
  assert back(tmp_path, tmp_path / "out" / "0" / "items", "found")
  other = {"true": "false", "false": "true"}[scan]
  done = support.run("to_huggingface", f"load_parameters_path={tmp_path / 'out' / '0'}", f"base_output_directory={tmp_path / 'no'}", f"scan_layers={other}")
  assert done.status == support.INVALID_ARGUMENT and "scan_layers" in done.err and not (tmp_path / "no").exists(), done


def test_r39_r40_padding_rows_are_zero_and_cut_off_again(tmp_path):
  model = support.Model(tmp_path / "hf")
  assert support.to_maxtext(model.write(), tmp_path / "padded", "scan_layers=true", "vocab_size=256").status == 0
  table = stock.leaves(stock.v0_numpy(tmp_path / "padded" / "0"))["params.params.token_embedder.embedding"]
  assert table.shape[0] == 256 and not np.asarray(table[128:], np.float32).any()
  out = tmp_path / "back"
  done = support.run("to_huggingface", f"load_parameters_path={tmp_path / 'padded' / '0'}", f"base_output_directory={out}", "weight_dtype=bfloat16")
  assert done.status == 0, done
  got = support.load_tensors(out)
  assert support.sha256(got["model.embed_tokens.weight"]) == support.sha256(model.tensors["model.embed_tokens.weight"])
  assert support.sha256(got["lm_head.weight"]) == support.sha256(model.tensors["lm_head.weight"])


def test_r39_a_table_that_is_too_small_is_refused_with_both_sizes(tmp_path):
  done = refused(tmp_path, support.tiny_tensors(), support.TINY, "vocab_size=100")
  assert "100" in done.err and "128" in done.err


def test_a_reduced_moe_goes_there_and_back_from_one_and_from_sixteen_devices(tmp_path):
  hf = support.GOLDENS / "qwen3-30b-a3b" / "hf"
  source = support.load_tensors(hf)
  for devices in 1, 16:
    out = tmp_path / f"out-{devices}"
    assert support.to_maxtext(hf, out, "scan_layers=true", f"--simulated_cpu_devices_count={devices}").status == 0
    done = support.run("to_huggingface", f"load_parameters_path={out / '0'}", f"base_output_directory={tmp_path / f'back-{devices}'}",
                       "weight_dtype=bfloat16")
    assert done.status == 0, done
    got = support.load_tensors(tmp_path / f"back-{devices}")
    assert {n: support.sha256(a) for n, a in got.items()} == {n: support.sha256(a) for n, a in source.items()}
    shutil.rmtree(out)
