"""Malformed and hostile safetensors files at the command line: the verdict, what the message says, nothing left behind.

The header's own tests go through every rule; here each case meets the whole program, as the only file of a model.
"""
import json
import os
import struct

import numpy as np
import pytest

import numpy_llama
import stock
import support
from support import CORRUPT_DATA, NOT_FOUND, RESOURCE_LIMIT, UNSUPPORTED, container


def parts(model: support.Model) -> tuple[dict, bytes]:
  """Header and data of a sound file."""
  raw = (model.write() / "model.safetensors").read_bytes()
  (length,) = struct.unpack("<Q", raw[:8])
  return json.loads(raw[8 : 8 + length]), raw[8 + length :]


NORM = "model.norm.weight"


def edit(**fields):
  """A file in which the entry of the last norm is changed."""
  return lambda header, data: container({**header, NORM: {**header[NORM], **fields}}, data)


def text(change):
  """A file whose header JSON is changed as text."""
  return lambda header, data: container(change(json.dumps(header)).encode(), data)


def metadata(value: str):
  return text(lambda t: t.replace('{"format": "pt"}', value))


def more(**entries):
  return lambda header, data: container({**header, **entries}, data)


def repeated_entry(t: str) -> str:
  entry = t[t.index(f'"{NORM}"') :]
  entry = entry[: entry.index("}") + 1]
  return t[:-1] + ", " + entry + "}"


def bytes_appended(header, data):
  return container(header, data + b"PK\x05\x06" + bytes(18))


def two_names_on_the_same_bytes(header, data):
  return container({**header, "model.extra": header[NORM]}, data)


def hole(header, data):
  """Eight bytes before the first tensor that belong to none."""
  moved = {n: e if n == "__metadata__" else {**e, "data_offsets": [o + 8 for o in e["data_offsets"]]} for n, e in header.items()}
  return container(moved, bytes(8) + data)


REJECTED = {
    "an empty file": (lambda h, d: b"", CORRUPT_DATA, "too small"),
    "seven bytes": (lambda h, d: b"\1\0\0\0\0\0\0", CORRUPT_DATA, "too small"),
    "a length of zero": (lambda h, d: bytes(8) + d, CORRUPT_DATA, "too small"),
    "a length beyond the file": (lambda h, d: struct.pack("<Q", 1 << 20) + b"{}", CORRUPT_DATA, "header"),
    "a length of 2^63": (lambda h, d: struct.pack("<Q", 1 << 63) + b"{}", RESOURCE_LIMIT, "9223372036854775808"),
    "a length of 2^64 - 1": (lambda h, d: struct.pack("<Q", (1 << 64) - 1) + b"{}", RESOURCE_LIMIT, "18446744073709551615"),
    "a length above the format's limit": (lambda h, d: struct.pack("<Q", 100_000_001) + b"{}", RESOURCE_LIMIT, "100000001"),
    "text that is not UTF-8": (lambda h, d: container(json.dumps(h).encode().replace(b"model.norm", b"model\xff\xfenorm"), d), CORRUPT_DATA, "UTF-8"),
    "a byte order mark": (lambda h, d: container(b"\xef\xbb\xbf" + json.dumps(h).encode(), d), CORRUPT_DATA, "byte order mark"),
    "an array": (lambda h, d: container(b"[]"), CORRUPT_DATA, ""),
    "a number": (lambda h, d: container(b"5"), CORRUPT_DATA, ""),
    "null": (lambda h, d: container(b"null"), CORRUPT_DATA, ""),
    "NUL bytes after the brace": (text(lambda t: t + "\0\0"), CORRUPT_DATA, "NUL"),
    "junk after the brace": (text(lambda t: t + "x"), CORRUPT_DATA, ""),
    "a comment": (text(lambda t: "/* hello */" + t), CORRUPT_DATA, ""),
    "single quotes": (text(lambda t: t.replace('"', "'")), CORRUPT_DATA, ""),
    "NaN": (edit(shape=[float("nan")]), CORRUPT_DATA, ""),
    "a tensor twice": (text(repeated_entry), CORRUPT_DATA, "twice"),
    "a key of an entry twice": (text(lambda t: t.replace('"dtype": "BF16"', '"dtype": "BF16", "dtype": "BF16"', 1)), CORRUPT_DATA, "dtype"),
    "metadata twice": (text(lambda t: t.replace('"__metadata__": {"format": "pt"}', '"__metadata__": {}, "__metadata__": {}')), CORRUPT_DATA, "__metadata__"),
    "a number in the metadata": (metadata('{"step": 0}'), CORRUPT_DATA, "step"),
    "null in the metadata": (metadata('{"step": null}'), CORRUPT_DATA, "step"),
    "an object in the metadata": (metadata('{"step": {}}'), CORRUPT_DATA, "step"),
    "a list in the metadata": (metadata('{"step": []}'), CORRUPT_DATA, "step"),
    "no shape": (lambda h, d: container({**h, NORM: {k: v for k, v in h[NORM].items() if k != "shape"}}, d), CORRUPT_DATA, "shape"),
    "a null shape": (edit(shape=None), CORRUPT_DATA, NORM),
    "one offset": (edit(data_offsets=[0]), CORRUPT_DATA, NORM),
    "three offsets": (edit(data_offsets=[0, 128, 256]), CORRUPT_DATA, NORM),
    "a negative dimension": (edit(shape=[-64]), CORRUPT_DATA, NORM),
    "a dimension of 64.0": (edit(shape=[64.0]), CORRUPT_DATA, NORM),
    "a dimension of 6.4e1": (text(lambda t: t.replace('"shape": [64]', '"shape": [6.4e1]')), CORRUPT_DATA, ""),
    "a dimension as text": (edit(shape=["64"]), CORRUPT_DATA, NORM),
    "a dimension above 2^64": (edit(shape=[1 << 65]), CORRUPT_DATA, NORM),
    "negative offsets": (edit(data_offsets=[-128, 0]), CORRUPT_DATA, NORM),
    "reversed offsets": (edit(data_offsets=[128, 0]), CORRUPT_DATA, NORM),
    "an end past the file": (edit(data_offsets=[1 << 40, (1 << 40) + 128]), CORRUPT_DATA, ""),
    "an overlap": (lambda h, d: container({**h, NORM: {**h[NORM], "data_offsets": [o - 2 for o in h[NORM]["data_offsets"]]}}, d), CORRUPT_DATA, ""),
    "two names on the same bytes": (two_names_on_the_same_bytes, CORRUPT_DATA, "overlap"),
    "a hole": (hole, CORRUPT_DATA, "belong to no tensor"),
    "bytes after the last tensor": (bytes_appended, CORRUPT_DATA, "after the last tensor"),
    "two bytes missing": (lambda h, d: container(h, d[:-2]), CORRUPT_DATA, ""),
    "a shape that does not fill its bytes": (edit(shape=[63]), CORRUPT_DATA, NORM),
    "a shape whose size overflows": (edit(shape=[1 << 40, 1 << 40]), CORRUPT_DATA, "overflow"),
    "half a byte of F4": (more(odd={"dtype": "F4", "shape": [3], "data_offsets": [0, 1]}), CORRUPT_DATA, "odd"),
    "an unknown dtype": (edit(dtype="BF17"), CORRUPT_DATA, "BF16"),
    "a dtype in lower case": (edit(dtype="bf16"), CORRUPT_DATA, "BF16"),
    "a rank of 100,000": (edit(shape=[1] * 100_000 + [64]), RESOURCE_LIMIT, "dimensions"),
    "an empty tensor inside another": (more(empty={"dtype": "F32", "shape": [0], "data_offsets": [1, 1]}), CORRUPT_DATA, ""),
    "a lone surrogate": (text(lambda t: t.replace('"model.norm', '"\\ud800model.norm')), CORRUPT_DATA, ""),
    "nesting 100,000 deep": (text(lambda t: t[:-1] + ', "x": ' + "[" * 100_000 + "]" * 100_000 + "}"), (CORRUPT_DATA, RESOURCE_LIMIT), ""),
    "a tensor called __metadata__": (more(__metadata__={"dtype": "F32", "shape": [], "data_offsets": [0, 4]}), CORRUPT_DATA, "__metadata__"),
    "an HTML page": (lambda h, d: b"<!DOCTYPE html><html><body>404</body></html>", UNSUPPORTED, "HTML"),
    "a Git LFS pointer": (lambda h, d: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n", NOT_FOUND, "Git LFS"),
    "a zip archive": (lambda h, d: b"PK\x03\x04" + bytes(60), UNSUPPORTED, "zip"),
    "a GGUF file": (lambda h, d: b"GGUF\x03\0\0\0" + bytes(60), UNSUPPORTED, "GGUF"),
}


@pytest.mark.parametrize("build, status, says", REJECTED.values(), ids=REJECTED.keys())
def test_it_refuses(tmp_path, build, status, says):
  model = support.Model(tmp_path / "hf")
  raw = build(*parts(model))
  (model.folder / "model.safetensors").write_bytes(raw)
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  allowed = status if isinstance(status, tuple) else (status,)
  assert done.status in allowed, done
  assert "model.safetensors" in done.err and says in done.err, done
  assert support.nothing_published(tmp_path / "out")
  assert done.peak_bytes < 200e6, "a small hostile file costs memory"


def padded(before: int, after: int):
  return text(lambda t: " " * before + t + " \n" * after)


def odd_offset(header, data):
  """A float32 tensor at an odd offset behind one of a single byte; the JSON names the last bytes first."""
  size, table = len(data), "model.layers.{}.self_attn.rotary_emb.inv_freq"
  last = {table.format(1): {"dtype": "F32", "shape": [1], "data_offsets": [size + 1, size + 5]},
          table.format(0): {"dtype": "U8", "shape": [1], "data_offsets": [size, size + 1]}}
  return container({**last, **header}, data + bytes(5))


ACCEPTED = {
    "white space around the JSON": padded(3, 20),
    "empty metadata": metadata("{}"),
    "null metadata": metadata("null"),
    "an unknown field in an entry": edit(extra={"a": [1, {"b": None}]}),
    "entries out of order, odd offsets": odd_offset,
}


@pytest.mark.parametrize("build", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_it_accepts(tmp_path, build):
  model = support.Model(tmp_path / "hf")
  (model.folder / "model.safetensors").write_bytes(build(*parts(model)))
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  assert done.status == 0, done
  got = stock.leaves(stock.v0_numpy(tmp_path / "out" / "0"))
  for name, array in numpy_llama.leaves(model.tensors, model.config, True).items():
    assert stock.digest(got[name]) == stock.digest(array), name


NAMES = ["../../escape", "/absolute", "a/b/c/0", "nul\u0000byte", "", "..", "x" * 1_000_000, "c/0", "zarr.json"]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:12]))
def test_a_tensor_name_is_never_a_path(tmp_path, name):
  model = support.Model(tmp_path / "hf")
  model.tensors[name] = np.zeros(4, np.float32)
  model.write()
  before = {p for p in tmp_path.rglob("*")}
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  # A tensor that no rule knows stops the conversion; its name reaches the message made printable.
  assert done.status not in (0, support.INTERRUPTED) and done.status < 128, done
  assert "\0" not in done.text
  assert support.nothing_published(tmp_path / "out")
  outside = {p for p in tmp_path.rglob("*") if tmp_path / "out" not in (p, *p.parents)} - before
  assert outside == set()


def test_control_characters_of_a_name_do_not_reach_the_terminal(tmp_path):
  model = support.Model(tmp_path / "hf")
  model.tensors["evil\x1b[2J\x07.weight"] = np.zeros(4, np.float32)
  model.write()
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  assert done.status != 0 and "evil" in done.err, done
  assert "\x1b" not in done.err and "\x07" not in done.err


def test_many_names_on_the_same_bytes_cost_memory_in_proportion_to_the_header(tmp_path):
  model = support.Model(tmp_path / "hf")
  header, data = parts(model)
  entry = json.dumps(header[NORM])
  body = json.dumps(header)[:-1] + "".join(f', "{n:06d}": {entry}' for n in range(200_000)) + "}"
  (model.folder / "model.safetensors").write_bytes(container(body.encode(), data))
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  assert done.status == CORRUPT_DATA, done
  assert done.peak_bytes < 50e6 + 10 * len(body), done.peak_bytes


FILES = {
    "a directory": lambda path: path.mkdir(),
    "a FIFO": os.mkfifo,
    "a symbolic link that leads to itself": lambda path: path.symlink_to(path.name),
    "a symbolic link to nothing": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", FILES.values(), ids=FILES.keys())
def test_what_is_no_file_is_refused_at_once(tmp_path, make):
  model = support.Model(tmp_path / "hf")
  (model.write() / "model.safetensors").unlink()
  make(model.folder / "model.safetensors")
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true", timeout=10)
  assert done.status in (support.INVALID_ARGUMENT, NOT_FOUND, support.IO_ERROR, UNSUPPORTED, CORRUPT_DATA), done
  assert "model.safetensors" in done.err, done
  assert support.nothing_published(tmp_path / "out")


def test_a_tensor_of_no_elements_is_named(tmp_path):
  model = support.Model(tmp_path / "hf")
  model.tensors["model.norm.weight"] = model.tensors["model.norm.weight"][:0]
  model.write()
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  assert done.status != 0 and "model.norm.weight" in done.err, done
  assert support.nothing_published(tmp_path / "out")
