"""Writes tests/data/zarr/tensorstore.json: small Zarr arrays of every kind that TensorStore writes, with what is in them.

usage: make_zarr_samples.py OUTPUT.json      (in the environment of requirements/orbax.txt)

A case holds the stored values ("values", base64 a key), the array ("shape", "dtype", "bytes" in C order, little endian) and
whether chunks that hold only the fill value were left out ("sparse").
"""
import base64
import json
import sys

import ml_dtypes
import numpy as np
import tensorstore as ts

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}


def codec(name, **configuration):
  return {"name": name, "configuration": configuration}


def shard(shape, codecs=(BYTES,), index_codecs=(BYTES, CRC), **more):
  return codec("sharding_indexed", chunk_shape=shape, codecs=list(codecs), index_codecs=list(index_codecs), **more)


def blosc(cname, shuffle, typesize=2, clevel=5, blocksize=0):
  return codec("blosc", cname=cname, clevel=clevel, shuffle=shuffle, typesize=typesize, blocksize=blocksize)


V2 = {
    "none": {"compressor": None},
    "zstd": {"compressor": {"id": "zstd", "level": 3}},
    "zlib": {"compressor": {"id": "zlib", "level": 9}},
    "gzip": {"compressor": {"id": "gzip", "level": 1}},
    "bz2": {"compressor": {"id": "bz2", "level": 1}},
    **{f"blosc_{cname}_{shuffle}": {"compressor": {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle}}
       for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd", "snappy") for shuffle in (-1, 0, 1, 2)},
    "order_f": {"order": "F", "compressor": None},
    "order_f_slash": {"order": "F", "compressor": {"id": "zstd", "level": 1}, "dimension_separator": "/"},
    "big_endian": {"dtype": ">i2", "compressor": None},
    "big_endian_f": {"dtype": ">f8", "order": "F", "compressor": {"id": "zlib", "level": 1}},
    "big_endian_complex": {"dtype": ">c8", "compressor": None},
}
V3 = {
    "bytes": [BYTES],
    "big_endian": [BIG],
    "crc32c": [BYTES, CRC],
    "zstd_checksum": [BYTES, codec("zstd", level=1, checksum=True)],
    "zstd_crc32c": [BYTES, codec("zstd", level=19), CRC],
    "gzip": [BYTES, codec("gzip", level=6)],
    "gzip_zstd": [BYTES, codec("gzip", level=1), codec("zstd", level=1)],
    "zstd_gzip": [BYTES, codec("zstd", level=1), codec("gzip", level=1)],
    "crc32c_blosc_gzip": [BYTES, CRC, blosc("lz4", "noshuffle"), codec("gzip", level=1)],
    "blosc_written": [BYTES, blosc("lz4", "bitshuffle", clevel=1), CRC],
    "blosc_zstd": [BYTES, blosc("zstd", "shuffle")],
    "blosc_blocks": [BIG, blosc("lz4hc", "shuffle", blocksize=64)],
    "transpose": [codec("transpose", order=[2, 0, 1]), BYTES],
    "transpose_twice": [codec("transpose", order=[2, 0, 1]), codec("transpose", order=[1, 0, 2]), BYTES, CRC],
    "shard": [shard([2, 2, 3])],
    "shard_start": [shard([2, 3, 1], [BYTES, codec("zstd", level=1)], index_location="start")],
    "shard_big_index": [shard([4, 2, 3], [BIG, CRC], [BIG, CRC])],
    "shard_index_without_crc": [shard([2, 6, 3], index_codecs=[BYTES])],
    "shard_transpose_inside": [shard([4, 2, 3], [codec("transpose", order=[2, 0, 1]), BYTES, codec("gzip", level=1)])],
    "shard_transpose_outside": [codec("transpose", order=[2, 0, 1]), shard([3, 2, 2])],
    "shard_nested": [shard([2, 6, 3], [shard([2, 2, 1], [BYTES, CRC], index_location="start")])],
}
DTYPES = ["bool", "int4", "int8", "uint64", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn",
          "complex64", "complex128"]


def values(dtype, shape, seed):
  rng = np.random.default_rng(seed)
  if dtype in ("int4", "float4_e2m1fn"):
    return rng.integers(0, 7, shape).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
  if dtype == "bool":
    return rng.integers(0, 2, shape).astype(bool)
  numbers = rng.normal(size=shape) * 40
  if np.dtype(dtype).kind == "c":
    numbers = numbers + 1j * rng.normal(size=shape)
  if np.dtype(dtype).kind in "iu":
    numbers = np.abs(numbers)
  return numbers.astype(dtype)


def case(driver, name, metadata, dtype, array=None, sparse=False):
  shape = (9, 11, 7) if array is None else array.shape
  array = values(dtype, shape, len(name)) if array is None else array
  context = ts.Context()
  store = {"driver": "memory", "path": "a/"}
  spec = {"driver": driver, "kvstore": store, "metadata": metadata, "store_data_equal_to_fill_value": not sparse}
  ts.open(spec, context=context, create=True, dtype=ts.dtype(dtype), shape=shape).result().write(array).result()
  stored = ts.KvStore.open(store, context=context).result()
  return {"name": f"{driver}_{name}", "sparse": sparse, "shape": list(shape), "dtype": dtype,
          "bytes": base64.urlsafe_b64encode(np.ascontiguousarray(array).tobytes()).decode(),
          "values": {key.decode(): base64.urlsafe_b64encode(stored[key]).decode() for key in sorted(stored.list().result())}}


def v2(name, metadata, dtype="int16", chunks=(4, 6, 3), **more):
  return case("zarr", name, {"chunks": list(chunks), **metadata}, dtype, **more)


def v3(name, codecs, dtype="int16", chunks=(4, 6, 3), **more):
  grid = {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}
  extra = {key: more.pop(key) for key in ("fill_value", "chunk_key_encoding") if key in more}
  return case("zarr3", name, {"chunk_grid": grid, "codecs": codecs, "data_type": dtype, **extra}, dtype, **more)


def main():
  cases = []
  for name, metadata in V2.items():
    dtype = {">f8": "float64", ">c8": "complex64"}.get(metadata.get("dtype"), "int16")
    cases.append(v2(name, metadata, dtype))
  cases += [v3(name, codecs) for name, codecs in V3.items()]
  for dtype in DTYPES:
    cases.append(v2(f"dtype_{dtype}", {"compressor": None}, dtype))
    one_byte = np.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize == 1
    cases.append(v3(f"dtype_{dtype}", [{"name": "bytes"} if one_byte else BIG], dtype))
  sparse = np.zeros((9, 11, 7), np.float32)
  sparse[5, 6, 2] = 4
  cases.append(v2("sparse", {"compressor": None, "dtype": "<f4", "fill_value": 0.0}, "float32", array=sparse, sparse=True))
  cases.append(v3("sparse", [BYTES], "float32", array=sparse + 1.5, fill_value=1.5, sparse=True))
  cases.append(v3("sparse_shard", [shard([2, 2, 3])], "float32", array=np.where(sparse == 0, np.float32(np.nan), sparse),
                  fill_value="NaN", sparse=True))
  for name in "default", "v2":
    for separator in "./":
      encoding = {"name": name, "configuration": {"separator": separator}}
      label = "slash" if separator == "/" else "dot"
      cases.append(v3(f"keys_{name}_{label}", [BYTES], chunk_key_encoding=encoding))
      cases.append(v3(f"keys_scalar_{name}_{label}", [BYTES], chunks=(), array=np.array(7, np.int16), chunk_key_encoding=encoding))
  cases.append(v2("scalar", {"compressor": None}, chunks=(), array=np.array(7, np.int16)))
  with open(sys.argv[1], "w") as file:
    file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
  main()
