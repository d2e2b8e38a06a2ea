"""Stock TensorStore reads and changes the OCDBT databases that maxport writes, and maxport reads those of TensorStore.

The developer program ocdbt_tool stands beside the program; `make test` and `make asan` build it.
"""
import hashlib
import pathlib
import random
import subprocess

import pytest
import tensorstore as ts

import measured
import support


@pytest.fixture(scope="session")
def tool() -> pathlib.Path:
  return support.PROGRAM.parent / "ocdbt_tool"


def run(tool: pathlib.Path, *arguments, text: str | None = None) -> str:
  done = subprocess.run([tool, *map(str, arguments)], input=text, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  return done.stdout


def stock(folder: pathlib.Path, **config) -> ts.KvStore:
  # Without a cache every read decodes the nodes above it again.
  return ts.KvStore.open({"driver": "ocdbt", "base": f"file://{folder}/", "config": config,
                          "cache_pool": {"total_bytes_limit": 1 << 30}}).result()


def our_view(tool: pathlib.Path, folder: pathlib.Path, prefix: str = "") -> dict[bytes, str]:
  """Key to digest of the value; dictionaries keep the order in which we list."""
  lines = run(tool, "dump", folder, *([prefix] if prefix else [])).splitlines()
  return {bytes.fromhex(key): value for key, value in (line.split(" ") for line in lines)}


def stock_view(store: ts.KvStore) -> dict[bytes, str]:
  keys = sorted(store.list().result())
  reads = [store.read(key) for key in keys]
  return {key: hashlib.sha256(read.result().value).hexdigest() for key, read in zip(keys, reads)}


def digests(values: dict[bytes, bytes]) -> dict[bytes, str]:
  return {key: hashlib.sha256(values[key]).hexdigest() for key in sorted(values)}


def successor(prefix: bytes) -> bytes:
  """The smallest key that is larger than all that start with `prefix`; empty for none."""
  prefix = prefix.rstrip(b"\xff")
  return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b""


def random_values(seed: int, count: int) -> dict[bytes, bytes]:
  """Keys that share long beginnings and are each other's beginnings, any bytes; values of 0 to 4000 bytes."""
  rng = random.Random(seed)
  parts = [b"", b"a", b"a.b", b"a/", b"layers_1", b"layers_10", b"\x00", b"\xff", b"kernel", b"x" * 300]
  values = {b"": b"the empty key", b"k" * 65535: b"the longest key"}
  while len(values) < count:
    key = b"/".join(rng.choices(parts, k=rng.randrange(1, 6))) + rng.choice([b"", b"%d" % rng.randrange(1000)])
    values[key] = rng.randbytes(rng.choice([0, 1, 15, 100, 1024, 1025, 4000]))
  return values


def write_ours(tool, folder, values: dict[bytes, bytes], node_bytes: int, inline_bytes: int) -> None:
  keys = list(values)
  random.Random(0).shuffle(keys)
  text = "".join(f"{key.hex()} {values[key].hex()}\n" for key in keys)
  run(tool, "write", folder, node_bytes, inline_bytes, text=text)


@pytest.mark.parametrize("node_bytes", [1, 300, 5000, 100_000_000, 0])
@pytest.mark.parametrize("inline_bytes", [0, 1024, 1 << 20])
def test_stock_reads_what_we_write(tool, tmp_path, node_bytes, inline_bytes):
  values = random_values(1, 700)
  write_ours(tool, tmp_path, values, node_bytes, inline_bytes)
  store = stock(tmp_path)
  assert stock_view(store) == digests(values)
  assert our_view(tool, tmp_path) == digests(values)
  for prefix in b"a", b"a.b/", b"layers_1", b"\xff", b"nothing":
    found = store.list(ts.KvStore.KeyRange(prefix, successor(prefix))).result()
    assert sorted(found) == sorted(key for key in values if key.startswith(prefix))
  for key in list(values)[:50]:
    assert store.read(key + b"\x01\x01").result().state == "missing"


@pytest.mark.parametrize("node_bytes", [1, 300, 100_000_000])
def test_stock_changes_what_we_wrote(tool, tmp_path, node_bytes):
  """Stock rewrites our nodes and would refuse trees that are not as it expects them."""
  values = random_values(2, 300)
  write_ours(tool, tmp_path, values, node_bytes, 100)
  store = stock(tmp_path)
  rng = random.Random(3)
  for _ in range(30):
    with ts.Transaction() as transaction:
      for key in rng.sample(sorted(values), 5):
        del values[key]
        store.with_transaction(transaction).write(key, None).result()
      for key, value in random_values(rng.randrange(1 << 30), 8).items():
        values[key] = value
        store.with_transaction(transaction).write(key, value).result()
  store.delete_range(ts.KvStore.KeyRange(b"a/", b"a0")).result()
  values = {key: value for key, value in values.items() if not b"a/" <= key < b"a0"}
  assert our_view(tool, tmp_path) == digests(values) == stock_view(stock(tmp_path))


def test_an_empty_database_of_ours_is_empty_for_stock(tool, tmp_path):
  run(tool, "write", tmp_path, 1000, 1000, text="")
  store = stock(tmp_path)
  assert store.list().result() == []
  store.write(b"key", b"value").result()
  assert our_view(tool, tmp_path) == digests({b"key": b"value"})


CONFIGS = {
    "as it comes": {},
    "as Orbax": {"max_decoded_node_bytes": 100_000_000, "max_inline_value_bytes": 1024},
    "deep": {"max_decoded_node_bytes": 200},
    "deeper": {"max_decoded_node_bytes": 1},
    "nothing inline": {"max_inline_value_bytes": 0},
    "all inline": {"max_inline_value_bytes": 1 << 20},
    "plain": {"compression": None},
    "strongest": {"compression": {"id": "zstd", "level": 19}},
    "numbered": {"manifest_kind": "numbered"},
    "numbered and deep": {"manifest_kind": "numbered", "max_decoded_node_bytes": 300},
    "narrow versions": {"version_tree_arity_log2": 1},
    "wide versions": {"version_tree_arity_log2": 16},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_we_read_what_stock_writes(tool, tmp_path, name):
  """In 70 commits, so that there are version-tree nodes of several heights, rewritten and removed keys."""
  store = stock(tmp_path, **CONFIGS[name])
  values = random_values(4, 300)
  keys = list(values)
  for i in range(70):
    with ts.Transaction() as transaction:
      for key in keys[i * 4:i * 4 + 24]:
        store.with_transaction(transaction).write(key, values[key]).result()
  store.delete_range(ts.KvStore.KeyRange(b"layers_1/", b"layers_10")).result()
  expected = stock_view(stock(tmp_path))
  assert 150 < len(expected) < 300
  assert our_view(tool, tmp_path) == expected
  for prefix in "a", "layers_10/":
    assert our_view(tool, tmp_path, prefix) == {k: v for k, v in expected.items() if k.startswith(prefix.encode())}
  key = max((key for key in expected if key.isascii() and b"\0" not in key), key=lambda key: len(values[key]))
  assert subprocess.run([tool, "read", tmp_path, key], capture_output=True, check=True).stdout == values[key]


def synthetic(i: int) -> tuple[bytes, bytes]:
  """The same as make_entry() of ocdbt_tool.cc."""
  key = b"params.params.decoder.layers_%d.tensor_%d.kernel/c/%d/%d" % (i // 6400, i // 64 % 100, i // 8 % 8, i % 8)
  return key, (key + key)[:i * 37 % 64]


@pytest.mark.parametrize("count, node_bytes", [
    (100_000, 20_000),
    (2_000_000, 100_000_000),
])
def test_stock_reads_very_many_keys(tool, tmp_path, count, node_bytes):
  """Two million keys make several nodes within Orbax's limit; writing them takes little memory."""
  done = measured.run([tool, "write-synthetic", tmp_path, count, node_bytes, 16])
  assert done.status == 0, done
  assert support.SANITIZED or done.peak_bytes < 400 << 20, done
  store = stock(tmp_path)
  assert set(store.list().result()) == {synthetic(i)[0] for i in range(count)}
  rng = random.Random(5)
  for i in [0, count - 1, *rng.sample(range(count), 2000)]:
    key, value = synthetic(i)
    assert store.read(key).result().value == value
  layer = b"params.params.decoder.layers_3."
  found = store.list(ts.KvStore.KeyRange(layer, successor(layer))).result()
  assert len(found) == 6400
  assert list(our_view(tool, tmp_path, layer.decode())) == sorted(found)
