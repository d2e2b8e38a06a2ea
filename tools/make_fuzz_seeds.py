"""Writes the seeds of the fuzz targets, tests/fuzz_corpora/TARGET/*, from the fixtures in tests/data.

usage: tools/make_fuzz_seeds.py

A seed is a small sound input, named after the digest of its bytes. Fuzzing starts from them. Needs Python alone and
libzstd.
"""
import ctypes
import hashlib
import json
import pathlib
import struct
from typing import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SAMPLES = DATA / "orbax_samples"
MAX_SEED_BYTES = 6000
MAX_SEEDS = 24

MANIFEST_MAGIC, NODE_MAGIC = bytes.fromhex("0cdb3a2a"), bytes.fromhex("0cdb20de")


def zstd_content(frame: bytes) -> bytes:
  library = ctypes.CDLL("libzstd.so.1")
  library.ZSTD_decompress.restype = ctypes.c_size_t
  out = ctypes.create_string_buffer(1 << 24)
  size = library.ZSTD_decompress(out, ctypes.c_size_t(len(out)), frame, ctypes.c_size_t(len(frame)))
  assert not library.ZSTD_isError(ctypes.c_size_t(size)), "a fixture holds a broken zstd frame"
  return out.raw[:size]


def frames(raw: bytes, magic: bytes) -> Iterator[bytes]:
  """OCDBT frames in a file: magic, le64 length of the whole frame, version, compression, body, CRC-32C."""
  at = raw.find(magic)
  while at >= 0:
    (length,) = struct.unpack_from("<Q", raw, at + 4) if at + 12 <= len(raw) else (0,)
    if 18 <= length <= len(raw) - at:
      yield raw[at : at + length]
    at = raw.find(magic, at + 4)


def framed_and_bare(frame: bytes) -> list[bytes]:
  version, compression = frame[12], frame[13]
  body = frame[14:-4]
  return [frame, body if (version, compression) == (0, 0) else zstd_content(body)]


def ocdbt(magic: bytes) -> Iterator[bytes]:
  for path in sorted(SAMPLES.rglob("*")):
    if path.is_file() and (path.name == "manifest.ocdbt" or path.parent.name == "d"):
      for frame in frames(path.read_bytes(), magic):
        yield from framed_and_bare(frame)


def files(*patterns: str) -> Iterator[bytes]:
  for pattern in patterns:
    for path in sorted(DATA.glob(pattern)):
      yield path.read_bytes()


def chunks() -> Iterator[bytes]:
  """Stored chunks of the samples that keep each in a file of its own, behind the byte that chooses how to decode: 1 is
  zstd in Zarr v3, 3 in Zarr v2."""
  for path in sorted(SAMPLES.glob("*_plain_*/**/*")):
    if path.is_file() and (path.name.replace(".", "").isdigit() or "c" in path.parts[-5:-1]):
      yield (b"\1" if "c" in path.parts[-5:-1] else b"\3") + path.read_bytes()


def containers() -> Iterator[bytes]:
  """safetensors files of a few bytes."""
  entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
  headers = [({}, 0), ({"a": entry}, 8), ({"__metadata__": {"format": "pt"}, "a": entry}, 8),
             ({"b": {"dtype": "BF16", "shape": [], "data_offsets": [8, 10]}, "a": entry}, 10),
             ({"a": {**entry, "extra": [1, {"x": None}]}}, 8), ({"e": {"dtype": "U8", "shape": [0, 3], "data_offsets": [0, 0]}}, 0),
             ({"q": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}, 2), ({"\u00e9\u4e2d": entry}, 8)]
  for header, size in headers:
    text = json.dumps(header).encode()
    for padded in text, text + b" " * (-len(text) % 8):
      yield struct.pack("<Q", len(padded)) + padded + bytes(size)


SEEDS = {
    "safetensors_header_fuzz": containers,
    "huggingface_index_fuzz": lambda: files("goldens/*/hf/config.json", "goldens/*/hf_sharded/*.index.json"),
    "ocdbt_manifest_fuzz": lambda: ocdbt(MANIFEST_MAGIC),
    "ocdbt_node_fuzz": lambda: ocdbt(NODE_MAGIC),
    "zarr_metadata_fuzz": lambda: files("orbax_samples/*/**/zarr.json", "orbax_samples/*/**/.zarray"),
    "zarr_chunk_fuzz": chunks,
    "orbax_metadata_fuzz": lambda: files("orbax_samples/*/**/_METADATA", "orbax_samples/*/**/_CHECKPOINT_METADATA",
                                         "orbax_samples/*/**/_sharding", "orbax_samples/*/**/process_0",
                                         "orbax_samples/*/**/_strings.json"),
}


def main() -> None:
  for target, make in SEEDS.items():
    assert any(ROOT.glob(f"src/*/{target}.cc")), f"there is no fuzz target {target}"
    folder = ROOT / "tests" / "fuzz_corpora" / target
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
      old.unlink()
    seeds = sorted({seed for seed in make() if len(seed) <= MAX_SEED_BYTES}, key=lambda seed: (len(seed), seed))
    # Of many alike, a few over the range of sizes.
    step = max(1, -(-len(seeds) // MAX_SEEDS))
    for seed in seeds[::step]:
      (folder / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    print(f"{target}: {len(seeds[::step])} of {len(seeds)} inputs")


if __name__ == "__main__":
  main()
