"""Reports from people who convert checkpoints, R01 to R20, as far as they concern Llama: refused before the first byte
with tensor, file and a way on named; or converted, and the report says what was dropped, filled or cast."""
import json
import os
import shutil

import ml_dtypes
import numpy as np
import pytest

import numpy_llama
import stock
import support
from support import CORRUPT_DATA, INVALID_ARGUMENT, NOT_FOUND, UNSUPPORTED


@pytest.fixture
def model(tmp_path):
  return support.Model(tmp_path / "hf")


@pytest.fixture
def sharded(tmp_path):
  return support.Model(tmp_path / "hf", shards=3)


def convert(model: support.Model, *arguments) -> support.Run:
  out = model.folder.parent / "out"
  shutil.rmtree(out, ignore_errors=True)
  return support.to_maxtext(model.folder, out, "scan_layers=true", *arguments)


def refuses(model: support.Model, statuses, *says, arguments=()) -> None:
  done = convert(model, *arguments)
  assert done.status in (statuses if isinstance(statuses, tuple) else (statuses,)), done
  for fragment in says:
    assert fragment in done.err, f"{fragment!r} is missing in {done}"
  assert support.nothing_published(model.folder.parent / "out")


def converts(model: support.Model, *says, arguments=(), config=None) -> None:
  done = convert(model, *arguments)
  assert done.status == 0, done
  for fragment in says:
    assert fragment in done.text, f"{fragment!r} is missing in {done}"
  got = stock.leaves(stock.v0_numpy(model.folder.parent / "out" / "0"))
  want = numpy_llama.leaves(model.tensors, config or model.config, True)
  assert set(got) - {"step", "opt_state"} == set(want)
  for name, array in want.items():
    assert stock.digest(got[name]) == stock.digest(array), name


class TestShardsAndIndex:
  def test_r01_a_tensor_the_index_lists_and_no_shard_holds(self, sharded):
    sharded.index_extra = {"mtp.fc.weight": sharded.file(1)}
    sharded.write()
    converts(sharded, "mtp.fc.weight")

  def test_r01_when_the_model_needs_it(self, sharded):
    tensor = sharded.tensors.pop("model.norm.weight")
    sharded.index_extra = {"model.norm.weight": sharded.file(1)}
    sharded.write()
    sharded.tensors["model.norm.weight"] = tensor
    refuses(sharded, (NOT_FOUND, CORRUPT_DATA), "model.norm.weight", sharded.file(1), "listed in the index")

  def test_r02_a_shard_that_was_never_downloaded(self, sharded):
    (sharded.write() / sharded.file(1)).unlink()
    refuses(sharded, NOT_FOUND, sharded.file(1), "incomplete download")

  def test_r03_a_stray_file_beside_an_index(self, sharded):
    sharded.write()
    stray = {name: np.zeros((3, 5), np.float32) for name in sharded.tensors}
    support.save_tensors(sharded.folder / "model.safetensors", stray)
    converts(sharded, "model.safetensors")

  def test_r04_an_index_whose_shards_were_renamed(self, sharded):
    sharded.write()
    for n in range(3):
      (sharded.folder / sharded.file(n)).rename(sharded.folder / f"renamed-{n}.safetensors")
    refuses(sharded, NOT_FOUND, sharded.file(0), "--ignore_index")

  def test_r04_the_index_can_be_ignored(self, sharded):
    sharded.write()
    for n in range(3):
      (sharded.folder / sharded.file(n)).rename(sharded.folder / f"renamed-{n}.safetensors")
    converts(sharded, arguments=["--ignore_index"])

  def test_r05_the_index_alone_says_which_files_count(self, sharded, monkeypatch):
    monkeypatch.setattr(sharded, "file", lambda n: ["part-a.safetensors", "tail.safetensors", "x.safetensors"][n])
    sharded.write()
    support.save_tensors(sharded.folder / "consolidated.safetensors", sharded.tensors)
    converts(sharded, "consolidated.safetensors")

  def test_r05_files_may_be_links_into_a_cache(self, sharded):
    sharded.write()
    blobs = sharded.folder.parent / "blobs"
    blobs.mkdir()
    for path in list(sharded.folder.iterdir()):
      path.rename(blobs / path.name)
      path.symlink_to(os.path.relpath(blobs / path.name, sharded.folder))
    converts(sharded)

  def test_r06_two_sources_for_one_target(self, model):
    model.tensors["language_model.model.norm.weight"] = model.tensors["model.norm.weight"]
    model.write()
    refuses(model, (INVALID_ARGUMENT, CORRUPT_DATA, UNSUPPORTED), "language_model.model.norm.weight", "model.norm.weight")

  @pytest.mark.parametrize("left", ["one byte less", "half", "20 bytes"])
  def test_r07_a_shard_that_is_cut(self, sharded, left):
    path = sharded.write() / sharded.file(0)
    size = path.stat().st_size
    new = {"one byte less": size - 1, "half": size // 2, "20 bytes": 20}[left]
    os.truncate(path, new)
    refuses(sharded, CORRUPT_DATA, sharded.file(0), str(new), "download")

  def test_r07_the_first_tensor_that_is_cut_is_named(self, sharded):
    path = sharded.write() / sharded.file(0)
    last = [name for name in sharded.tensors if sharded.place[name] == 0][-1]
    os.truncate(path, path.stat().st_size - 1)
    refuses(sharded, CORRUPT_DATA, sharded.file(0), last)

  @pytest.mark.parametrize("what, raw, status", [
      ("Git LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", NOT_FOUND),
      ("HTML", b"<html><body>Not found</body></html>", UNSUPPORTED), ("zip", b"PK\x03\x04" + bytes(100), UNSUPPORTED),
      ("GGUF", b"GGUF" + bytes(100), UNSUPPORTED)])
  def test_r08_files_that_are_something_else(self, model, what, raw, status):
    (model.write() / "model.safetensors").write_bytes(raw)
    refuses(model, status, what, "model.safetensors")

  @pytest.mark.parametrize("metadata", ["{}", "null"])
  def test_r09_empty_metadata(self, model, metadata):
    model.metadata = {"format": "pt"}
    path = model.write() / "model.safetensors"
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b'{"format": "pt"}', metadata.encode().ljust(len(b'{"format": "pt"}'))))
    converts(model)

  def test_r10_a_number_in_the_metadata(self, model):
    model.metadata = {"step": 0}
    model.write()
    refuses(model, CORRUPT_DATA, "step")

  def test_r11_a_header_above_the_limit(self, model):
    with open(model.write() / "model.safetensors", "wb") as file:
      file.write((100_000_001).to_bytes(8, "little"))
      file.truncate(100_000_009)
    refuses(model, support.RESOURCE_LIMIT, "100000001", "100000000")

  def test_r12_only_a_pickle(self, model):
    (model.write() / "model.safetensors").unlink()
    (model.folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04" + bytes(100))
    refuses(model, (UNSUPPORTED, NOT_FOUND), "pytorch_model.bin")


class TestConfig:
  def written_configuration(self, model) -> str:
    """The run configuration beside the checkpoint."""
    out = model.folder.parent / "out"
    (path,) = [p for p in out.rglob("*.yml")]
    return path.read_text()

  @pytest.mark.parametrize("fields", [
      {"rope_theta": 77000.0}, {"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 77000.0}},
      {"rope_theta": 77000.0, "rope_parameters": {"rope_type": "default", "rope_theta": 77000.0}}])
  def test_r13_the_rope_base_wherever_it_stands(self, model, fields):
    model.config |= fields
    model.config = {k: v for k, v in model.config.items() if v is not None}
    model.write()
    converts(model)
    assert "rope_max_timescale: 77000" in self.written_configuration(model)

  def test_r13_two_rope_bases(self, model):
    model.config |= {"rope_theta": 77000.0, "rope_parameters": {"rope_type": "default", "rope_theta": 88000.0}}
    model.write()
    refuses(model, INVALID_ARGUMENT, "77000", "88000", "rope_theta")

  @pytest.mark.parametrize("head_dim", ["absent", None, 16])
  def test_r14_the_head_dimension_may_be_absent_or_null(self, model, head_dim):
    model.config["head_dim"] = head_dim
    if head_dim == "absent":
      del model.config["head_dim"]
    model.write()
    converts(model)

  def test_r14_an_explicit_head_dimension_wins(self, tmp_path):
    model = support.Model(tmp_path / "hf", head_dim=32)
    model.write()
    converts(model)

  def test_r14_and_is_checked(self, model):
    model.write()
    model.write_config({**model.config, "head_dim": 32})
    refuses(model, INVALID_ARGUMENT, "self_attn.q_proj.weight", "[64, 64]", "[128, 64]")

  @pytest.mark.parametrize("key_value_heads", ["absent", None])
  def test_r15_without_key_value_heads_every_head_has_its_own(self, tmp_path, key_value_heads):
    model = support.Model(tmp_path / "hf", num_key_value_heads=None)
    if key_value_heads == "absent":
      del model.config["num_key_value_heads"]
    model.write()
    converts(model)

  def test_r15_and_that_is_checked(self, model):
    model.write()
    model.write_config({k: v for k, v in model.config.items() if k != "num_key_value_heads"})
    refuses(model, INVALID_ARGUMENT, "k_proj")

  @pytest.mark.parametrize("field, value, tensor, shapes", [
      ("num_hidden_layers", 3, "model.layers.2.", []), ("num_hidden_layers", 1, "model.layers.1.", []),
      ("vocab_size", 127, "model.embed_tokens.weight", ["[128, 64]", "[127, 64]"]),
      ("vocab_size", 129, "model.embed_tokens.weight", ["[128, 64]", "[129, 64]"]),
      ("intermediate_size", 95, "model.layers.0.mlp.gate_proj.weight", ["[96, 64]", "[95, 64]"]),
      ("hidden_size", 128, "model.embed_tokens.weight", ["[128, 64]", "[128, 128]"])])
  def test_r16_a_configuration_that_contradicts_the_weights(self, model, field, value, tensor, shapes):
    model.write()
    model.write_config({**model.config, field: value})
    refuses(model, (INVALID_ARGUMENT, NOT_FOUND, CORRUPT_DATA), tensor, *shapes)

  def test_a_model_name_that_contradicts_the_dimensions(self, model):
    model.write()
    refuses(model, INVALID_ARGUMENT, "override_model_config", arguments=["model_name=llama3.1-8b"])
    converts(model, arguments=["model_name=llama3.1-8b", "override_model_config=true"])


class TestTiedHead:
  def test_r17_an_equal_head_is_dropped_with_a_note(self, tmp_path):
    model = support.Model(tmp_path / "hf", tie_word_embeddings=True)
    model.tensors["lm_head.weight"] = model.tensors["model.embed_tokens.weight"]
    model.write()
    converts(model, "lm_head.weight")

  def test_r17_a_head_that_differs_in_one_value(self, tmp_path):
    model = support.Model(tmp_path / "hf", tie_word_embeddings=True)
    head = model.tensors["model.embed_tokens.weight"].copy()
    head[77, 3] += ml_dtypes.bfloat16(1)
    model.tensors["lm_head.weight"] = head
    model.write()
    refuses(model, (INVALID_ARGUMENT, CORRUPT_DATA), "lm_head.weight", "--head=tie", "--head=untie")
    converts(model, arguments=["--head=tie"])
    converts(model, arguments=["--head=untie"], config={**model.config, "tie_word_embeddings": False})

  def test_r18_a_tie_that_is_said_twice_and_differently(self, model):
    model.config |= {"text_config": {"tie_word_embeddings": True}, "tie_word_embeddings": False}
    model.write()
    refuses(model, INVALID_ARGUMENT, "tie_word_embeddings")

  @pytest.mark.parametrize("head", [True, False])
  def test_r20_without_the_key_the_file_decides_and_it_is_said(self, tmp_path, head):
    model = support.Model(tmp_path / "hf", tie_word_embeddings=not head)
    del model.config["tie_word_embeddings"]
    model.write()
    converts(model, "tie_word_embeddings", config={**model.config, "tie_word_embeddings": not head})


class TestNames:
  def test_r22_leftover_rotary_tables_are_ignored_and_counted(self, model):
    for n in range(2):
      model.tensors[f"model.layers.{n}.self_attn.rotary_emb.inv_freq"] = np.zeros(8, np.float32)
    model.write()
    converts(model, "rotary_emb.inv_freq")

  def test_r25_a_tensor_that_no_rule_knows_stops_the_conversion(self, model):
    model.tensors["model.layers.0.mlp.experts.0.wX.weight"] = np.zeros((4, 4), np.float32)
    model.write()
    refuses(model, (INVALID_ARGUMENT, UNSUPPORTED, CORRUPT_DATA), "model.layers.0.mlp.experts.0.wX.weight")

  def test_r25_a_tensor_that_is_missing_is_named(self, model):
    del model.tensors["model.layers.1.mlp.up_proj.weight"]
    model.write()
    refuses(model, NOT_FOUND, "model.layers.1.mlp.up_proj.weight")


def test_an_array_that_is_not_used_is_reported_in_the_dry_run(model):
  model.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.zeros(8, np.float32)
  model.write()
  done = convert(model, "--dry_run")
  assert done.status == 0 and "rotary_emb.inv_freq" in done.text, done
  assert not (model.folder.parent / "out").exists()
  assert json.loads((model.folder / "config.json").read_text()) == model.config
