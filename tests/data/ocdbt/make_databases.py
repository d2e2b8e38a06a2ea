"""Writes small OCDBT databases with stock TensorStore, and what stock reads from them and from the Orbax samples.

Run with a Python that has tensorstore. Identifiers and file names are random, so every run gives other bytes with the
same content. expected.json has for each database the number of keys and the SHA-256 over one line a key, in order of
the keys: the key in hexadecimal, a space, the SHA-256 of the value, a line feed.
"""
import hashlib
import json
import pathlib
import shutil

import tensorstore as ts

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = HERE.parent / "orbax_samples"


def open_store(folder: pathlib.Path, **config) -> ts.KvStore:
  shutil.rmtree(folder, ignore_errors=True)
  spec = {"driver": "ocdbt", "base": f"file://{folder}/", "config": config}
  return ts.KvStore.open(spec).result()


def value_of(key: bytes, length: int) -> bytes:
  return (hashlib.sha256(key).digest() * (length // 32 + 1))[:length]


def write_deep(folder: pathlib.Path) -> None:
  """Several levels: small nodes, keys with long and short common prefixes, inline and other values."""
  store = open_store(folder, max_decoded_node_bytes=400, max_inline_value_bytes=20)
  with ts.Transaction() as transaction:
    for layer in range(12):
      for name in (b"kernel", b"kernel.scale", b"bias"):
        for chunk in (b"c/0/0", b"c/0/1", b"c/10/0", b"zarr.json"):
          key = b"params.layers_%d.%s/%s" % (layer, name, chunk)
          store.with_transaction(transaction).write(key, value_of(key, layer * 4)).result()
    for key in (b"", b"\x00", b"\xff\xff", b"a", b"params.layers_1", b"params.layers_1.kernel/c/0/0/0"):
      store.with_transaction(transaction).write(key, value_of(key, 30)).result()


def write_many_commits(folder: pathlib.Path) -> None:
  """Forty versions, so that older ones move to version-tree nodes; keys are changed and removed on the way."""
  store = open_store(folder, max_inline_value_bytes=8)
  for i in range(40):
    store.write(b"key%d" % (i % 7), value_of(b"%d" % i, i)).result()
    if i % 10 == 9:
      store.delete_range(ts.KvStore.KeyRange(b"key3", b"key5")).result()


def write_numbered(folder: pathlib.Path) -> None:
  store = open_store(folder, manifest_kind="numbered", compression=None)
  for i in range(3):
    store.write(b"key%d" % i, value_of(b"%d" % i, 2000)).result()


def write_emptied(folder: pathlib.Path) -> None:
  store = open_store(folder)
  store.write(b"key", b"value").result()
  store.delete_range(ts.KvStore.KeyRange()).result()


def digest(folder: pathlib.Path) -> dict:
  store = ts.KvStore.open({"driver": "ocdbt", "base": f"file://{folder}/"}).result()
  keys = sorted(store.list().result())
  values = (hashlib.sha256(store.read(key).result().value).hexdigest() for key in keys)
  lines = "".join(f"{key.hex()} {value}\n" for key, value in zip(keys, values))
  return {"keys": len(keys), "sha256": hashlib.sha256(lines.encode()).hexdigest()}


def main() -> None:
  for name, write in {"deep": write_deep, "many_commits": write_many_commits, "numbered": write_numbered,
                      "emptied": write_emptied}.items():
    write(HERE / name)
  folders = [HERE / name for name in ("deep", "many_commits", "numbered", "emptied")]
  folders += sorted(path.parent for path in SAMPLES.rglob("manifest.ocdbt"))
  expected = {folder.relative_to(HERE.parent).as_posix(): digest(folder) for folder in folders}
  (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
  main()
