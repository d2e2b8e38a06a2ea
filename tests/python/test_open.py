"""maxport.open: every kind of checkpoint, and indexing as NumPy does it."""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from leaves import describe

import maxport

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "data"
FAMILIES = sorted(folder.name for folder in (DATA / "goldens").iterdir() if (folder / "hf").is_dir())
SAMPLES = sorted(file.parent.name for file in (DATA / "orbax_samples").glob("*/expected.json"))

BY_SAFETENSORS = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "U16": np.uint16, "I32": np.int32,
    "U32": np.uint32, "I64": np.int64, "U64": np.uint64, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F32": np.float32, "F64": np.float64, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}


def read_safetensors(file: pathlib.Path) -> dict[str, np.ndarray]:
  """Another reader of the format, a few lines long, to compare with."""
  content = file.read_bytes()
  begin = 8 + int.from_bytes(content[:8], "little")
  arrays = {}
  for name, entry in json.loads(content[8:begin]).items():
    if name != "__metadata__":
      first, last = entry["data_offsets"]
      array = np.frombuffer(content[begin + first:begin + last], BY_SAFETENSORS[entry["dtype"]])
      arrays[name] = array.reshape(entry["shape"])
  return arrays


def write_safetensors(file: pathlib.Path, entries: dict[str, tuple[str, list[int], bytes]], metadata=None) -> None:
  header, at = {"__metadata__": metadata} if metadata else {}, 0
  for name, (dtype, shape, content) in entries.items():
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(content)]}
    at += len(content)
  text = json.dumps(header).encode()
  file.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(content for _, _, content in entries.values()))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_s_source_opens_and_equals_its_file(family):
  folder = DATA / "goldens" / family / "hf"
  opened = maxport.open(folder)
  expected = read_safetensors(folder / "model.safetensors")
  assert opened.format == "huggingface"
  assert opened.config == json.loads((folder / "config.json").read_text())
  assert list(opened) == sorted(expected, key=str.encode)
  assert opened.nbytes == sum(array.nbytes for array in expected.values())
  for name, array in expected.items():
    assert (opened[name].shape, opened[name].dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(np.asarray(opened[name]), array, strict=True)


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_orbax_sample_opens_and_equals_what_stock_orbax_reads(sample):
  folder = DATA / "orbax_samples" / sample
  expected = json.loads((folder / "expected.json").read_text())
  opened = maxport.open(folder / expected["item_path"])
  leaves = expected["leaves"]
  arrays = {name: leaf for name, leaf in leaves.items() if "sha256" in leaf}
  assert opened.format == "orbax"
  assert set(opened) - set(arrays) <= {"step"}
  # Python numbers are stored as small as they fit; the reference saw them as Python hands them out again.
  found = {name: np.asarray(opened[name], None if leaf["shape"] else leaf["dtype"]) for name, leaf in arrays.items()}
  assert {name: describe(array) for name, array in found.items()} == arrays
  assert opened.texts == {name: leaf["str"] for name, leaf in leaves.items() if "str" in leaf}
  empties = {name: leaf["empty"].lower() for name, leaf in leaves.items() if "empty" in leaf}
  assert {name: kind.lower() for name, kind in opened.empties.items()} == empties


def test_sharded_models_adapters_and_loose_files_open(tmp_path):
  llama = DATA / "goldens" / "llama3.1-8b"
  whole = maxport.open(llama / "hf")
  sharded = maxport.open(llama / "hf_sharded")
  assert list(sharded) == list(whole)
  assert all(np.array_equal(sharded[name], whole[name]) for name in whole)
  adapter = maxport.open(llama / "lora_adapter")
  assert adapter.config["peft_type"] == "LORA"
  assert len(adapter) == len(read_safetensors(llama / "lora_adapter" / "adapter_model.safetensors"))
  alone = maxport.open(llama / "hf" / "model.safetensors")
  assert (alone.format, alone.config, list(alone)) == ("safetensors", None, list(whole))
  for shard in (llama / "hf_sharded").glob("*.safetensors"):
    shutil.copy(shard, tmp_path)
  loose = maxport.open(tmp_path)
  assert (loose.format, list(loose)) == ("safetensors", list(whole))


def test_step_and_item_can_be_chosen(tmp_path):
  sample = DATA / "orbax_samples" / "mt_ocdbt_zarr3_dev1_float32"
  shutil.copytree(sample / "0", tmp_path / "3")
  shutil.copytree(sample / "0", tmp_path / "10")
  assert maxport.open(tmp_path).path == str(tmp_path / "10" / "items")
  assert maxport.open(tmp_path, step=3).path == str(tmp_path / "3" / "items")
  assert maxport.open(tmp_path / "3", item="items").metadata == {"scan_layers": True}
  shutil.copytree(sample / "0" / "items", tmp_path / "3" / "other")
  assert maxport.open(tmp_path, step=3, item="other").path == str(tmp_path / "3" / "other")
  with pytest.raises(maxport.NotFoundError, match="7"):
    maxport.open(tmp_path, step=7)
  with pytest.raises(maxport.InvalidArgumentError, match="not an Orbax checkpoint"):
    maxport.open(DATA / "goldens" / "llama3.1-8b" / "hf", step=1)


def test_a_tree_has_the_structure_that_was_saved():
  tree = maxport.open(DATA / "orbax_samples" / "v0_pytree_odd_leaves").tree()
  assert (tree["s"], tree["n"], tree["e"], tree["ed"]) == ("hello", None, [], {})
  assert [type(leaf) for leaf in tree["tup"]] == [maxport.LazyArray] * 2
  mixed = maxport.open(DATA / "orbax_samples" / "v0_pytree_mixed").tree()
  assert mixed["nested"]["dots.in.name"].shape == (2,)
  assert mixed["nested"]["list"][0].shape == (2,)


def keys_of(shape: tuple[int, ...], rng: random.Random):
  """A random key, mostly valid, of every kind that NumPy knows."""

  def item(extent: int):
    bounds = [None, *range(-extent - 2, extent + 3)]
    kind = rng.randrange(8)
    if kind < 3:
      return slice(rng.choice(bounds), rng.choice(bounds), rng.choice([None, 1, 2, 3, -1, -2, 7]))
    if kind < 5:
      return rng.randrange(-extent - 1, extent + 1)
    if kind == 5:
      return [rng.randrange(-extent, extent) for _ in range(3)]
    if kind == 6:
      return np.array([[rng.randrange(-extent, extent) for _ in range(3)] for _ in range(2)])
    return np.array([rng.random() < 0.5 for _ in range(extent)])

  key = [item(extent) for extent in shape[:rng.randrange(len(shape) + 1)]]
  for extra in (None, Ellipsis):
    if rng.random() < 0.3:
      key.insert(rng.randrange(len(key) + 1), extra)
  return key[0] if len(key) == 1 and rng.random() < 0.5 else tuple(key)


@pytest.mark.parametrize("place", [
    "goldens/llama3.1-8b/hf", "goldens/qwen3-30b-a3b/hf", "orbax_samples/mt_ocdbt_zarr3_dev16_bfloat16",
    "orbax_samples/mt_plain_zarr2_dev2_bfloat16", "orbax_samples/v0_sharded2d_ocdbt_zarr3_smallchunks",
    "orbax_samples/v0_sharded2d_plain_zarr2_smallchunks", "orbax_samples/v0_pytree_mixed"
])
def test_indexing_equals_numpy_s_on_random_keys(place, monkeypatch):
  from maxport import _selection

  rng = random.Random(place)
  opened = maxport.open(DATA / place)
  arrays = [(lazy, np.asarray(lazy)) for lazy in opened.values()]
  for _ in range(1500):
    # The thresholds that choose between few large and many small reads must not matter.
    monkeypatch.setattr(_selection, "_WORTH_SKIPPING", rng.choice([1, 100, 64 << 10]))
    monkeypatch.setattr(_selection, "_MAX_PARTIAL_BOX", rng.choice([8, 1000, 32 << 20]))
    lazy, array = rng.choice(arrays)
    key = keys_of(array.shape, rng)
    try:
      wanted = array[key]
    except IndexError:
      with pytest.raises(IndexError):
        lazy[key]
      continue
    found = lazy[key]
    assert type(found) is type(wanted), key
    np.testing.assert_array_equal(found, wanted, strict=True, err_msg=str(key))


def test_boxes_of_many_axes_are_those_of_numpy(tmp_path):
  rng = random.Random(11)
  array = np.arange(3 * 4 * 2 * 5 * 3, dtype=np.int16).reshape(3, 4, 2, 5, 3)
  write_safetensors(tmp_path / "a.safetensors", {"w": ("I16", list(array.shape), array.tobytes())})
  lazy = maxport.open(tmp_path / "a.safetensors")["w"]
  for _ in range(2000):
    key = tuple(slice(*sorted(rng.choices(range(extent + 1), k=2))) for extent in array.shape)
    np.testing.assert_array_equal(lazy[key], array[key], strict=True, err_msg=str(key))


def test_a_key_that_numpy_refuses_is_refused():
  lazy = maxport.open(DATA / "goldens" / "llama3.1-8b" / "hf")["model.norm.weight"]
  for key, message in [((0, 0), "too many indices"), (80, "index 80 is out of bounds for axis 0 with size 80"),
                       ((..., ...), "single ellipsis"), (1.5, "only integers"), ("a", "only integers"),
                       (np.ones(3, bool), "boolean index has shape")]:
    with pytest.raises(IndexError, match=message):
      lazy[key]


def test_zero_dimensional_arrays_index_as_numpy_s():
  lazy = maxport.open(DATA / "orbax_samples" / "v0_pytree_odd_leaves")["i"]
  assert lazy[()] == np.asarray(lazy)[()]
  assert lazy[...].shape == ()
  with pytest.raises(TypeError, match="unsized"):
    len(lazy)


def test_the_array_protocol_converts_and_always_copies():
  lazy = maxport.open(DATA / "goldens" / "llama3.1-8b" / "hf")["model.norm.weight"]
  assert np.asarray(lazy).dtype == ml_dtypes.bfloat16
  assert np.asarray(lazy, np.float32).dtype == np.float32
  assert np.array(lazy, copy=True).shape == lazy.shape
  with pytest.raises(ValueError, match="always a copy"):
    np.asarray(lazy, copy=False)
  assert (lazy.ndim, lazy.size, lazy.itemsize, lazy.nbytes, len(lazy)) == (1, 80, 2, 160, 80)
  assert repr(lazy) == "<maxport.LazyArray 'model.norm.weight' shape=(80,) dtype=bfloat16>"


def test_packed_elements_are_unpacked(tmp_path):
  codes = np.arange(24) * 7 % 16
  packed = (codes[0::2] | codes[1::2] << 4).astype(np.uint8)
  write_safetensors(tmp_path / "a.safetensors", {"w": ("F4", [4, 6], packed.tobytes())})
  lazy = maxport.open(tmp_path / "a.safetensors")["w"]
  assert lazy.dtype == ml_dtypes.float4_e2m1fn
  np.testing.assert_array_equal(np.asarray(lazy).view(np.uint8), codes.reshape(4, 6))
  np.testing.assert_array_equal(lazy[1:3, 1:4].view(np.uint8), codes.reshape(4, 6)[1:3, 1:4])


def test_an_array_lives_on_without_its_checkpoint():
  lazy = maxport.open(DATA / "orbax_samples" / "v0_pytree_mixed")["f32"]
  assert lazy[1].shape == (5,)


def bytes_read() -> int:
  fields = dict(line.split(": ") for line in pathlib.Path("/proc/self/io").read_text().splitlines())
  return int(fields["rchar"])


def test_indexing_reads_only_what_is_asked(tmp_path):
  rows, columns = 4096, 2048
  content = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
  write_safetensors(tmp_path / "a.safetensors", {"w": ("F32", [rows, columns], content.tobytes())})
  lazy = maxport.open(tmp_path / "a.safetensors")["w"]
  overhead = 64 << 10
  for key, most in [((3, slice(128)), 512), (slice(100, 200), 100 * columns * 4), (17, columns * 4),
                    ((slice(None, None, 1024), slice(None, 16)), 4 * columns * 4),
                    (([5, 4000], slice(None)), 2 * columns * 4)]:
    before = bytes_read()
    found = lazy[key]
    assert bytes_read() - before <= most + overhead, key
    np.testing.assert_array_equal(found, content[key])


def test_threads_share_a_checkpoint():
  opened = maxport.open(DATA / "orbax_samples" / "mt_ocdbt_zarr3_dev16_bfloat16")
  wanted = {name: describe(array)["sha256"] for name, array in opened.items()}
  wrong = []

  def work(seed: int):
    rng = random.Random(seed)
    for _ in range(60):
      name = rng.choice(list(opened))
      if hashlib.sha256(np.asarray(opened[name]).tobytes()).hexdigest() != wanted[name]:
        wrong.append(name)

  threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert wrong == []


def test_reading_lets_other_threads_run(tmp_path):
  size = 256 << 20
  with open(tmp_path / "a.safetensors", "wb") as file:
    text = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    file.write(len(text).to_bytes(8, "little") + text)
    file.truncate(8 + len(text) + size)
  lazy = maxport.open(tmp_path / "a.safetensors")["w"]
  reader = threading.Thread(target=lambda: np.asarray(lazy))
  reader.start()
  turns = 0
  while reader.is_alive():
    turns += 1
    reader.join(0.001)
  assert turns > 3


def test_errors_are_of_the_kind_and_say_what_to_do(tmp_path):
  with pytest.raises(FileNotFoundError, match="nothing is there") as caught:
    maxport.open(tmp_path / "missing")
  assert isinstance(caught.value, maxport.NotFoundError)
  assert (caught.value.kind, caught.value.exit_code) == ("not found", 4)
  (tmp_path / "bad.safetensors").write_bytes((20).to_bytes(8, "little") + b"{" * 20)
  with pytest.raises(maxport.CorruptDataError, match="bad.safetensors"):
    maxport.open(tmp_path / "bad.safetensors")
  with pytest.raises(KeyError, match="no tensor called nothing"):
    maxport.open(DATA / "goldens" / "llama3.1-8b" / "hf")["nothing"]
  with pytest.raises(maxport.MaxportError):
    maxport.open(tmp_path)


def test_a_file_that_shrank_meanwhile_is_an_error(tmp_path):
  write_safetensors(tmp_path / "a.safetensors", {"w": ("U8", [1000], bytes(1000))})
  lazy = maxport.open(tmp_path / "a.safetensors")["w"]
  os.truncate(tmp_path / "a.safetensors", 200)
  with pytest.raises(maxport.MaxportError):
    np.asarray(lazy)


def test_every_error_kind_has_its_exception():
  from maxport import errors

  assert set(errors.BY_KIND) == {"invalid argument", "unsupported", "not found", "corrupt data", "I/O error",
                                 "resource limit", "interrupted", "internal error"}
  for kind, exception in errors.BY_KIND.items():
    assert exception.kind == kind
    assert issubclass(exception, maxport.MaxportError)
    assert str(exception("text")) == "text"


def test_control_c_stops_a_long_read(tmp_path):
  script = """
import json, os, signal, sys, threading
import numpy as np
import maxport

signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells make background work ignore
size = 16 << 30
with open(sys.argv[1], "wb") as file:
  text = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
  file.write(len(text).to_bytes(8, "little") + text)
  file.seek(8 + len(text) + size - 1)
  file.write(b"1")
lazy = maxport.open(sys.argv[1])["w"]
place = np.memmap(sys.argv[1] + ".out", np.uint8, "w+", shape=(size,))
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
  lazy._read_box((0,), (size,), place)
except KeyboardInterrupt:
  print("stopped, last read" if place[-1] else "stopped, last not read")
"""
  run = subprocess.run([sys.executable, "-c", script, tmp_path / "a.safetensors"], capture_output=True, text=True,
                       check=False)
  assert run.stdout.strip() == "stopped, last not read", run.stderr
