"""A flipped bit in stored data makes a stock restore fail; it never restores other numbers in silence."""
import json
import os
import pathlib
import random
import shutil

import pytest

import stock
import support

FLIPS = 200


def data_files(items: pathlib.Path) -> list[pathlib.Path]:
  """The files that hold array data: OCDBT data files, or chunks in their own files."""
  metadata = {"_METADATA", "_sharding", "manifest.ocdbt", "commit_success.txt", "zarr.json", ".zarray"}
  return [p for p in sorted(items.rglob("*")) if p.is_file() and p.name not in metadata and "array_metadatas" not in p.parts]


def flip_and_restore(step: pathlib.Path, expected: dict, scratch: pathlib.Path, flips: int) -> tuple[int, list[str]]:
  """How many flips were noticed, and those that gave other values. Each flip gets a copy of the step under a name of
  its own, so that no cache can help; files that stay as they are, are linked."""
  rng = random.Random(1)
  files = data_files(step / "items")
  sizes = [f.stat().st_size for f in files]
  noticed, silent = 0, []
  for n in range(flips):
    file, = rng.choices(files, sizes)
    raw = bytearray(file.read_bytes())
    position = rng.randrange(len(raw) * 8)
    raw[position // 8] ^= 1 << position % 8
    copy = scratch / f"flip-{n}"
    shutil.copytree(step, copy, copy_function=os.link)
    damaged = copy / file.relative_to(step)
    damaged.unlink()
    damaged.write_bytes(raw)
    for how in "v0 NumPy", "v1 load":
      try:
        differing = stock.differences(stock.RESTORES[how](copy), expected)
      except Exception:  # whatever stock Orbax raises: it noticed
        noticed += 1
      else:
        silent += [f"{how}: bit {position} of {file.relative_to(step)}: {d}" for d in differing[:1]]
    shutil.rmtree(copy)
  return noticed, silent


@pytest.mark.parametrize("compression, zarr3, ocdbt", [
    ("blosc", True, True), ("zstd", True, True), ("none", True, True), ("zstd", False, True), ("blosc", True, False)])
def test_no_flipped_bit_restores_other_values(tmp_path, compression, zarr3, ocdbt):
  golden = support.expected("llama3.1-8b", "scan-bfloat16")
  arguments = support.golden_arguments(golden, checkpoint_storage_use_zarr3=zarr3, checkpoint_storage_use_ocdbt=ocdbt)
  done = support.to_maxtext(support.LLAMA / "hf", tmp_path / "out", *arguments, f"--compression={compression}")
  assert done.status == 0, done
  noticed, silent = flip_and_restore(tmp_path / "out" / "0", golden["leaves"], tmp_path, FLIPS)
  assert silent == []
  assert noticed > FLIPS, "most flips hit data that is read"


def test_the_flips_would_be_seen(tmp_path):
  """MaxText's own output has no checksums: the same flips do restore other values, so the test above can fail."""
  sample = support.DATA / "orbax_samples" / "mt_ocdbt_zarr3_dev2_bfloat16"
  expected = json.loads((sample / "expected.json").read_text())["leaves"]
  shutil.copytree(sample / "0", tmp_path / "0")
  _, silent = flip_and_restore(tmp_path / "0", expected, tmp_path, 20)
  assert len(silent) > 5
