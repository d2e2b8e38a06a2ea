"""Hostile index files and configurations at the command line: refused before the first byte, with the field named."""
import json

import pytest

import support
from support import CORRUPT_DATA, INVALID_ARGUMENT, NOT_FOUND, RESOURCE_LIMIT, UNSUPPORTED

REFUSALS = (INVALID_ARGUMENT, UNSUPPORTED, NOT_FOUND, CORRUPT_DATA, RESOURCE_LIMIT)


def refused(model: support.Model, tmp_path, *says, statuses=REFUSALS) -> support.Run:
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true", timeout=20)
  assert done.status in statuses, done
  for fragment in says:
    assert fragment in done.err, f"{fragment!r} is missing in {done}"
  assert support.nothing_published(tmp_path / "out")
  assert done.peak_bytes < 200e6
  return done


def sharded(tmp_path) -> tuple[support.Model, dict]:
  model = support.Model(tmp_path / "hf", shards=2)
  model.write()
  return model, json.loads((model.folder / "model.safetensors.index.json").read_text())["weight_map"]


PLACES = {"an absolute path": "/etc/passwd", "a way out": "../other/model.safetensors", "a backslash": "a\\b.safetensors",
          "an URL": "https://example.org/model.safetensors", "the index itself": "model.safetensors.index.json", "nothing": "",
          "a number": 7, "null": None, "a list": ["model-00001-of-00002.safetensors"]}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_a_weight_map_may_only_name_files_of_the_folder(tmp_path, place):
  model, weight_map = sharded(tmp_path)
  model.write_index({**weight_map, "model.norm.weight": place})
  refused(model, tmp_path, "model.safetensors.index.json", "model.norm.weight")


INDEXES = {
    "a list": "[]", "a number": "5", "empty": "", "cut": '{"weight_map": {', "without a weight_map": "{}",
    "with a weight_map of another kind": '{"weight_map": []}', "with an empty weight_map": '{"weight_map": {}}',
}


@pytest.mark.parametrize("text", INDEXES.values(), ids=INDEXES.keys())
def test_an_index_must_be_one(tmp_path, text):
  model, _ = sharded(tmp_path)
  (model.folder / "model.safetensors.index.json").write_text(text)
  refused(model, tmp_path, "model.safetensors.index.json")


def test_a_name_twice_in_the_weight_map_is_refused(tmp_path):
  model, weight_map = sharded(tmp_path)
  path = model.folder / "model.safetensors.index.json"
  path.write_text(path.read_text().replace('"weight_map": {', '"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors", '))
  refused(model, tmp_path, "model.safetensors.index.json", "model.norm.weight")


def test_an_index_of_white_space_costs_no_memory(tmp_path):
  model, _ = sharded(tmp_path)
  with open(model.folder / "model.safetensors.index.json", "wb") as file:
    file.truncate(2_000_000_000)  # NUL bytes, sparse: no disk is used
  refused(model, tmp_path, "model.safetensors.index.json")


def test_a_wrong_total_size_is_told_but_stops_nothing(tmp_path):
  model, weight_map = sharded(tmp_path)
  for total in [-1, "many", 1]:
    model.write_index(weight_map, total_size=total)
    out = tmp_path / f"out-{total}"
    done = support.to_maxtext(model.folder, out, "scan_layers=true")
    assert done.status == 0 or (done.status in REFUSALS and "total_size" in done.err), done
    assert (out / "0").exists() == (done.status == 0)


def change(**fields):
  return lambda config: json.dumps({**config, **fields})


CONFIGS = {
    "a key twice": (lambda c: json.dumps(c)[:-1] + ', "hidden_size": 32}', "hidden_size"),
    "a number beyond any": (lambda c: json.dumps(c).replace('"rope_theta": 10000.0', '"rope_theta": 1e400'), "config.json"),
    "an integer as text": (change(hidden_size="64"), "hidden_size"),
    "a fraction": (change(num_hidden_layers=2.5), "num_hidden_layers"),
    "a billion layers": (change(num_hidden_layers=10**9), "num_hidden_layers"),
    "more layers than numbers": (change(num_hidden_layers=10**30), "num_hidden_layers"),
    "no layers": (change(num_hidden_layers=0), "num_hidden_layers"),
    "negative layers": (change(num_hidden_layers=-2), "num_hidden_layers"),
    "no head dimension": (change(head_dim=0), "head_dim"),
    "no vocabulary": (change(vocab_size=0), "vocab_size"),
    "a negative width": (change(hidden_size=-64), "hidden_size"),
    "heads that do not divide": (change(head_dim=None, num_attention_heads=3), "num_attention_heads"),
    "no model type": (lambda c: json.dumps({k: v for k, v in c.items() if k not in ("model_type", "architectures")}), "model_type"),
    "an unknown model type": (change(model_type="perceptron", architectures=["PerceptronForCausalLM"]), "perceptron"),
    "an array": (lambda c: "[]", "config.json"),
    "nothing": (lambda c: "", "config.json"),
    "cut": (lambda c: json.dumps(c)[:50], "config.json"),
    "deep nesting": (lambda c: '{"a": ' * 100_000 + "1" + "}" * 100_000, "config.json"),
}


@pytest.mark.parametrize("build, says", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_configuration_is_checked_before_anything_is_written(tmp_path, build, says):
  model = support.Model(tmp_path / "hf")
  model.write()
  model.write_config(build(model.config))
  refused(model, tmp_path, says)


def test_two_architectures_or_none_do_not_confuse_it(tmp_path):
  for architectures in [], ["LlamaForCausalLM", "LlamaModel"]:
    model = support.Model(tmp_path / "hf", architectures=architectures)
    model.write()
    done = support.to_maxtext(model.folder, tmp_path / f"out-{len(architectures)}", "scan_layers=true")
    assert done.status == 0 or "architectures" in done.err, done


def test_code_beside_the_weights_is_never_run(tmp_path):
  model = support.Model(tmp_path / "hf", auto_map={"AutoModelForCausalLM": "modeling_evil.Evil"})
  model.write()
  (model.folder / "modeling_evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
  support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  assert not (tmp_path / "ran").exists()


def test_a_missing_configuration_is_named(tmp_path):
  model = support.Model(tmp_path / "hf")
  (model.write() / "config.json").unlink()
  refused(model, tmp_path, "config.json", statuses=(NOT_FOUND,))


def test_a_missing_folder_is_named(tmp_path):
  done = support.to_maxtext(tmp_path / "nowhere", tmp_path / "out", "scan_layers=true")
  assert done.status == NOT_FOUND and "nowhere" in done.err, done


def test_a_layer_type_list_of_the_wrong_length_is_refused(tmp_path):
  model = support.Model(tmp_path / "hf", layer_types=["full_attention"])
  model.write()
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  assert done.status in REFUSALS and "layer_types" in done.err, done
  assert support.nothing_published(tmp_path / "out")
