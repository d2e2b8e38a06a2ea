"""`maxport inspect` on every sample and every family: what it prints is what stock tools say of the files, and what was
printed before (tests/data/inspect; MAXPORT_WRITE_TRANSCRIPTS=1 writes those anew)."""
import json
import os
import pathlib
import re

import pytest
import tensorstore as ts

import support

SAMPLES = support.DATA / "orbax_samples"
TRANSCRIPTS = support.DATA / "inspect"
CHECKPOINTS = sorted(p.parent.name for p in SAMPLES.glob("*/expected.json"))
FAMILIES = sorted(p.name for p in support.GOLDENS.iterdir() if p.is_dir())
SAFETENSORS = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64", "U8": "uint8",
               "F8_E4M3": "float8_e4m3fn"}


@pytest.fixture(autouse=True)
def in_the_data_folder(monkeypatch):
  """So that transcripts hold no path of this machine."""
  monkeypatch.chdir(support.DATA)


def inspect(path, *arguments) -> support.Run:
  done = support.run("inspect", path, *arguments)
  assert done.status == 0, done
  return done


def report(path) -> dict:
  return json.loads(inspect(path, "--json").out)


def check_transcript(name: str, text: str) -> None:
  file = TRANSCRIPTS / f"{name}.txt"
  if os.environ.get("MAXPORT_WRITE_TRANSCRIPTS"):
    TRANSCRIPTS.mkdir(exist_ok=True)
    file.write_text(text)
  assert text == file.read_text()


def stored_bytes(item: pathlib.Path, ocdbt: bool) -> dict[str, int]:
  """Bytes of the chunks of each array, as TensorStore's key-value stores or the file system say."""
  sizes: dict[str, int] = {}
  if ocdbt:
    store = ts.KvStore.open({"driver": "ocdbt", "base": f"file://{item.resolve()}/"}).result()
    entries = [(key.decode(), len(store[key])) for key in store.list().result()]
  else:
    entries = [(p.relative_to(item).as_posix(), p.stat().st_size) for p in item.rglob("*") if p.is_file()]
  for key, size in entries:
    if "/" in key and not key.endswith((".zarray", "zarr.json", ".zattrs", ".zgroup")):
      name = key.split("/", 1)[0]
      sizes[name] = sizes.get(name, 0) + size
  return sizes


def metadata_of(item: pathlib.Path, name: str, ocdbt: bool, zarr3: bool) -> dict:
  file = "zarr.json" if zarr3 else ".zarray"
  if not ocdbt:
    return json.loads((item / name / file).read_text())
  store = ts.KvStore.open({"driver": "ocdbt", "base": f"file://{item.resolve()}/"}).result()
  return json.loads(store[f"{name}/{file}"])


@pytest.mark.parametrize("sample", CHECKPOINTS)
def test_a_checkpoint_is_what_the_stock_tools_say(sample):
  golden = json.loads((SAMPLES / sample / "expected.json").read_text())
  item = SAMPLES / sample / golden["item_path"]
  result = report(f"orbax_samples/{sample}")
  assert (support.DATA / result["path"]).resolve() == item.resolve() and result["kind"] == "Orbax checkpoint"
  rows = {row["name"]: row for row in result["tensors"]}
  assert set(rows) == set(golden["leaves"])
  tree = json.loads((item / "_METADATA").read_text())
  zarr3, ocdbt = tree.get("use_zarr3", False), (item / "manifest.ocdbt").exists()
  assert result["storage"] == f"{'OCDBT' if ocdbt else 'folders'}, Zarr v{3 if zarr3 else 2}"
  types = {".".join(str(k["key"]) for k in leaf["key_metadata"]): leaf["value_metadata"]["value_type"] for leaf in tree["tree_metadata"].values()}
  stored = stored_bytes(item, ocdbt)
  for name, leaf in golden["leaves"].items():
    row = rows[name]
    assert row.get("value_type") == types[name] and "problem" not in row
    if "shape" not in leaf:
      assert row["shape"] is None and row["bytes"] == row["stored"] == 0
      assert leaf.get("str") == row.get("value")
      continue
    if types[name] != "scalar":  # a Python number restores as NumPy's default, whatever it is stored as
      assert (row["type"], row["shape"]) == (leaf["dtype"], leaf["shape"])
    assert row["stored"] == stored.get(name, 0)
    about = metadata_of(item, name, ocdbt, zarr3)
    chunk = about["chunk_grid"]["configuration"]["chunk_shape"] if zarr3 else about["chunks"]
    assert row["chunks"]["shape"] == chunk
    count = 1
    for extent, step in zip(about["shape"], chunk):
      count *= -(-extent // step)
    assert row["chunks"]["count"] == count
  assert result["stored"] == sum(stored[name] for name in rows if name in stored)


@pytest.mark.parametrize("sample", CHECKPOINTS)
def test_the_table_of_a_sample_is_as_recorded(sample):
  check_transcript(sample, inspect(f"orbax_samples/{sample}").out)


def header(file: pathlib.Path) -> dict:
  raw = file.read_bytes()
  return {k: v for k, v in json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")]).items() if k != "__metadata__"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_is_what_its_headers_and_configuration_say(family):
  folder = support.GOLDENS / family / "hf"
  result = report(f"goldens/{family}/hf")
  entries = header(folder / "model.safetensors")
  rows = {row["name"]: row for row in result["tensors"]}
  assert set(rows) == set(entries)
  for name, entry in entries.items():
    begin, end = entry["data_offsets"]
    assert (rows[name]["type"], rows[name]["shape"]) == (SAFETENSORS[entry["dtype"]], entry["shape"])
    assert rows[name]["bytes"] == rows[name]["stored"] == end - begin and rows[name]["file"] == "model.safetensors"
  config = json.loads((folder / "config.json").read_text())
  assert result["family"] and {"role": "model_type", "value": config["model_type"], "source": "model_type"} in result["config"]["roles"]
  traced = 0
  for role in result["config"]["roles"]:
    if re.fullmatch(r"[a-z_0-9.]+", role["source"]) and role["role"] != "tied head":
      value = config
      for key in role["source"].split("."):
        value = value.get(key) if isinstance(value, dict) else None
      if value is not None and not isinstance(value, dict):
        assert value == role["value"], role
        traced += 1
  assert traced > 8, "where a value came from can be followed"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_table_of_a_family_is_as_recorded(family):
  check_transcript(f"hf-{family}", inspect(f"goldens/{family}/hf").out)


def test_one_file_needs_no_configuration(tmp_path):
  result = report("goldens/llama3.1-8b/hf/model.safetensors")
  assert result["kind"] == "safetensors file" and result["family"] is None and len(result["tensors"]) == 30


@pytest.mark.parametrize("family, model_type", [("llama3.1-8b", "llama"), ("gemma3-4b", "gemma3"), ("qwen3-30b-a3b", "qwen3-moe")])
def test_our_checkpoints_tell_their_family_and_layout(tmp_path, family, model_type):
  tags = [p.name for p in (support.GOLDENS / family).glob("*scan-bfloat16") if not p.name.startswith("lora")]
  for tag in tags:
    out = tmp_path / tag
    done = support.to_maxtext(support.GOLDENS / family / "hf", out, *support.golden_arguments(support.expected(family, tag)))
    assert done.status == 0, done
    for path in (out, out / "0", out / "0" / "items"):
      result = report(path)
      assert result["family"] == model_type and result["layout"] == f"Linen, {'un' if 'unscan' in tag else ''}scanned"
      assert result["config"]["source"].endswith("0/maxport.json")
      assert all(row["chunks"]["stored"] == row["chunks"]["count"] for row in result["tensors"] if row["shape"] is not None)


def test_what_cannot_be_inspected_says_so(tmp_path):
  assert support.run("inspect", tmp_path / "nowhere").status == support.NOT_FOUND
  assert support.run("inspect").status == support.INVALID_ARGUMENT
  assert support.run("inspect", tmp_path, "--nonsense").status == support.INVALID_ARGUMENT
  (tmp_path / "bad.safetensors").write_bytes(b"\xff\0\0\0\0\0\0\0{}")
  assert support.run("inspect", tmp_path / "bad.safetensors").status == support.CORRUPT_DATA


def test_hostile_names_reach_no_terminal(tmp_path):
  (tmp_path / "m.safetensors").write_bytes(support.container(
      {"\x1b[31mred\n</script>": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"x"))
  done = inspect(tmp_path / "m.safetensors")
  assert "\x1b" not in done.out and "\\x1B[31mred\\x0A" in done.out.replace("\\x1b", "\\x1B").replace("\\x0a", "\\x0A"), done
  assert report(tmp_path / "m.safetensors")["tensors"][0]["name"] == "\x1b[31mred\n</script>"
