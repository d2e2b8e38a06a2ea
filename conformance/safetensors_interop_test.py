"""The stock safetensors library reads what maxport writes, byte for byte what it would have written itself; maxport reads
what the library writes, in every type. transformers loads a model folder that maxport split into shards.

Needs the developer programs safetensors_tool and huggingface_tool: MAXPORT_TOOLS names their folder, otherwise they are
built.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess

import numpy as np
import pytest
import safetensors
import safetensors.numpy

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
LLAMA = REPOSITORY / "tests" / "data" / "goldens" / "llama3.1-8b" / "hf"


@pytest.fixture(scope="session")
def tools() -> pathlib.Path:
  if path := os.environ.get("MAXPORT_TOOLS"):
    return pathlib.Path(path)
  for command in ["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release", "--target", "safetensors_tool", "huggingface_tool"]:
    subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
  return REPOSITORY / "build"


def run(tools: pathlib.Path, tool: str, *arguments) -> bytes:
  done = subprocess.run([tools / tool, *map(str, arguments)], capture_output=True)
  assert done.returncode == 0, done.stderr.decode()
  return done.stdout


# What the library calls a type, what the file calls it, bits of an element.
TYPES = [("bool", "BOOL", 8), ("int8", "I8", 8), ("uint8", "U8", 8), ("int16", "I16", 16), ("uint16", "U16", 16), ("int32", "I32", 32),
         ("uint32", "U32", 32), ("int64", "I64", 64), ("uint64", "U64", 64), ("float16", "F16", 16), ("float32", "F32", 32),
         ("float64", "F64", 64), ("bfloat16", "BF16", 16), ("float8_e4m3fn", "F8_E4M3", 8), ("float8_e4m3fnuz", "F8_E4M3FNUZ", 8),
         ("float8_e5m2", "F8_E5M2", 8), ("float8_e5m2fnuz", "F8_E5M2FNUZ", 8), ("float8_e8m0fnu", "F8_E8M0", 8),
         ("float4_e2m1fn_x2", "F4", 4), ("complex64", "C64", 64)]


def stock_file(path: pathlib.Path, tensors: dict[str, tuple[str, list[int], bytes]], metadata=None) -> None:
  """A file of the stock library from any type and bytes."""
  data = {name: np.frombuffer(raw, np.uint8) for name, (_, _, raw) in tensors.items()}
  specs = {name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=data[name].ctypes.data if data[name].size else 0, data_len=len(raw))
           for name, (dtype, shape, raw) in tensors.items()}
  safetensors.serialize_file(specs, path, metadata=metadata)


def every_type(seed: int) -> dict[str, tuple[str, list[int], bytes]]:
  """Tensors of every type under names that sort otherwise than their types; some empty, some scalar."""
  rng = random.Random(seed)
  tensors = {}
  for dtype, _, bits in TYPES:
    for shape in [3, 5], [], [0, 4], [2, 2, 2]:
      count = int(np.prod(shape))
      storage = list(shape)
      if bits == 4:  # the library's F4 has two elements in a stored one, along the last axis
        if not shape:
          continue
        bits_stored = 8
      else:
        bits_stored = bits
      raw = rng.randbytes(count * bits_stored // 8)
      if dtype == "bool":
        raw = bytes(byte & 1 for byte in raw)
      tensors[f"{rng.randrange(10**6)}.{dtype}.{'x'.join(map(str, shape))}\"\n\u00e9"] = (dtype, storage, raw)
  return tensors


@pytest.fixture
def mixed(tmp_path) -> tuple[pathlib.Path, dict]:
  tensors = every_type(1)
  stock_file(tmp_path / "stock.safetensors", tensors, {"format": "pt"})
  return tmp_path / "stock.safetensors", tensors


def test_we_read_every_type_that_the_library_writes(tools, mixed):
  path, tensors = mixed
  _, *entries = map(json.loads, run(tools, "safetensors_tool", "list", path).splitlines())
  assert {entry["name"] for entry in entries} == set(tensors)
  assert {entry["dtype"] for entry in entries} == {code for _, code, _ in TYPES}
  for entry in entries:
    dtype, shape, raw = tensors[entry["name"]]
    bits = {name: bits for name, _, bits in TYPES}[dtype]
    assert int(np.prod(entry["shape"])) * bits == len(raw) * 8
    if bits != 4:
      assert entry["shape"] == shape
    assert run(tools, "safetensors_tool", "dump", path, entry["name"]) == raw


def test_what_we_write_is_byte_for_byte_what_the_library_writes(tools, mixed):
  path, _ = mixed
  run(tools, "safetensors_tool", "copy", path, path.with_name("ours.safetensors"))
  assert path.with_name("ours.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}, {"a \u00e9 \"": "\u0001\\\U0001f600"}])
def test_metadata_is_carried_over(tools, tmp_path, metadata):
  stock_file(tmp_path / "stock.safetensors", {"w": ("float32", [2], bytes(8))}, metadata)
  run(tools, "safetensors_tool", "copy", tmp_path / "stock.safetensors", tmp_path / "ours.safetensors")
  with safetensors.safe_open(tmp_path / "ours.safetensors", "numpy") as ours:
    assert (ours.metadata() or {}) == (metadata or {})
    assert ours.get_tensor("w").tolist() == [0, 0]


def test_the_library_opens_what_we_write(tools, tmp_path):
  rng = np.random.default_rng(2)
  tensors = {f"layers.{n}.w": rng.normal(size=(n, 3)).astype(dtype) for n, dtype in enumerate([np.float32, np.float64, np.float16, np.int8] * 3)}
  safetensors.numpy.save_file(tensors, tmp_path / "stock.safetensors")
  run(tools, "safetensors_tool", "copy", tmp_path / "stock.safetensors", tmp_path / "ours.safetensors")
  with safetensors.safe_open(tmp_path / "ours.safetensors", "numpy") as ours:
    assert set(ours.keys()) == set(tensors)
    for name, tensor in tensors.items():
      np.testing.assert_array_equal(ours.get_tensor(name), tensor, strict=True)
      if len(tensor) > 1:
        np.testing.assert_array_equal(ours.get_slice(name)[1:], tensor[1:])


def test_every_golden_is_written_as_the_library_wrote_it(tools, tmp_path):
  goldens = sorted((REPOSITORY / "tests" / "data" / "goldens").glob("*/hf/model.safetensors"))
  assert len(goldens) >= 18
  for golden in goldens:
    run(tools, "safetensors_tool", "copy", golden, tmp_path / "ours.safetensors")
    assert (tmp_path / "ours.safetensors").read_bytes() == golden.read_bytes(), golden


@pytest.mark.parametrize("size", ["20KB", "60KB", "5GB"])
def test_a_model_folder_in_shards_holds_the_same_tensors(tools, tmp_path, size):
  source = tmp_path / "hf"
  shutil.copytree(LLAMA, source)
  (source / "tokenizer.json").write_text("{}")
  (source / "modeling_evil.py").write_text("raise SystemExit")
  run(tools, "huggingface_tool", "copy", source, tmp_path / "out", size)
  written = {p.name for p in (tmp_path / "out").iterdir()}
  assert {"config.json", "tokenizer.json"} <= written and "modeling_evil.py" not in written
  assert json.loads((tmp_path / "out" / "config.json").read_text()) == json.loads((LLAMA / "config.json").read_text())
  want = safetensors.deserialize((LLAMA / "model.safetensors").read_bytes())
  got, place = {}, {}
  for path in sorted((tmp_path / "out").glob("*.safetensors")):
    for name, tensor in safetensors.deserialize(path.read_bytes()):
      assert name not in got
      got[name], place[name] = tensor, path.name
  assert got == dict(want)
  index = tmp_path / "out" / "model.safetensors.index.json"
  assert index.exists() == (size != "5GB")
  if index.exists():
    assert json.loads(index.read_text())["weight_map"] == place
  shown = json.loads(run(tools, "huggingface_tool", "show", tmp_path / "out"))
  assert shown["warnings"] == [] and shown["tensors"] == len(got)


def test_transformers_loads_the_shards_and_would_have_split_them_so(tools, transformers, tmp_path):
  run(tools, "huggingface_tool", "copy", LLAMA, tmp_path / "ours", "40KB")
  transformers("load_shards.py", LLAMA, tmp_path / "ours", "40KB")
