"""`maxport verify` notices every flipped bit that changes what a stock reader returns, in every storage form, wherever in the
checkpoint's folder it is; and each deleted, truncated or swapped file. Stock Orbax is asked about what verify passes."""
import json
import os
import pathlib
import random
import shutil

import pytest

import stock
import support

FLIPS = 125  # for each of the eight forms
FORMS = {
    "ocdbt-zarr3-blosc": ("--compression=blosc",),
    "ocdbt-zarr3-none": ("--compression=none",),
    "ocdbt-zarr3-zstd-sharded": ("--compression=zstd", "--record_sharding", "--simulated_cpu_devices_count=4"),
    "ocdbt-zarr2-zstd": ("checkpoint_storage_use_zarr3=false",),
    "ocdbt-zarr2-none": ("checkpoint_storage_use_zarr3=false", "--compression=none"),
    "plain-zarr3-blosc": ("checkpoint_storage_use_ocdbt=false", "--compression=blosc"),
    "plain-zarr3-none": ("checkpoint_storage_use_ocdbt=false", "--compression=none"),
    "plain-zarr2-none": ("checkpoint_storage_use_ocdbt=false", "checkpoint_storage_use_zarr3=false", "--compression=none"),
}


def make(folder: pathlib.Path, form: str) -> pathlib.Path:
  model = support.Model(folder / "hf", hidden_size=32, intermediate_size=48, head_dim=8, vocab_size=64)
  done = support.to_maxtext(model.write(), folder / "out", *FORMS[form])
  assert done.status == 0, done
  return folder / "out" / "0"


def restored(step: pathlib.Path) -> list:
  """What stock readers return of a step: the values, and what they say about it, with the metadata that MaxText looks at."""
  values = {name: stock.digest(leaf) if hasattr(leaf, "shape") else repr(leaf) for name, leaf in stock.leaves(stock.v0_numpy(step)).items()}
  told = stock.v1.metadata(step, checkpointable_name="items")
  return [values, repr(told.metadata), told.custom_metadata]


def passes(step: pathlib.Path) -> bool:
  done = support.run("verify", step)
  assert done.status in (0, 2, 3, 4, 5, 6, 7), done  # neither a crash nor an internal error
  return done.status == 0


def all_files(step: pathlib.Path) -> list[pathlib.Path]:
  return [p for p in sorted(step.rglob("*")) if p.is_file()]


def copied(step: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
  """Under a name of its own, so that no cache can help; files are links, so they are replaced, not changed."""
  shutil.copytree(step, to, copy_function=os.link)
  return to


def replace(file: pathlib.Path, content: bytes) -> None:
  file.unlink()
  file.write_bytes(content)


@pytest.mark.parametrize("form", FORMS)
def test_no_flipped_bit_that_readers_see_is_passed(tmp_path, form):
  step = make(tmp_path, form)
  want = restored(step)
  rng = random.Random(form)
  files = [f for f in all_files(step) if f.stat().st_size > 0]
  sizes = [f.stat().st_size for f in files]
  caught, harmless, missed = 0, [], []
  for n in range(FLIPS):
    # Half of the flips anywhere, so mostly in data; half in any file, so mostly in what describes it.
    file = rng.choices(files, sizes)[0] if n % 2 else rng.choice(files)
    raw = bytearray(file.read_bytes())
    bit = rng.randrange(len(raw) * 8)
    raw[bit // 8] ^= 1 << bit % 8
    damaged = copied(step, tmp_path / f"flip-{n}")
    replace(damaged / file.relative_to(step), bytes(raw))
    if not passes(damaged):
      caught += 1
    else:
      where = f"bit {bit} of {file.relative_to(step)}"
      try:
        (harmless if restored(damaged) == want else missed).append(where)
      except Exception as error:  # whatever stock Orbax raises
        missed.append(f"{where}: {type(error).__name__}")
    shutil.rmtree(damaged)
  assert missed == []
  assert caught + len(harmless) == FLIPS and caught > FLIPS / 2, (caught, harmless)


@pytest.mark.parametrize("form", ["ocdbt-zarr3-blosc", "plain-zarr2-none"])
def test_each_deleted_truncated_or_swapped_file_is_noticed(tmp_path, form):
  step = make(tmp_path, form)
  assert passes(step)
  files = [f.relative_to(step) for f in all_files(step) if f.name not in ("maxport.json", "commit_success.txt")]
  if form.startswith("plain"):  # one leaf's files stand for all leaves'
    kept = {name for name in (step / "items").iterdir() if name.name.startswith("params.") and "wo" not in name.name and "norm" not in name.name}
    files = [f for f in files if not any((step / f).is_relative_to(k) for k in kept)]
  last = None
  for n, file in enumerate(files):
    raw = (step / file).read_bytes()
    damages = {"deleted": None, "emptied": b"", "cut": raw[: len(raw) // 2], "cut by a byte": raw[:-1]}
    if last is not None and (step / last).read_bytes() != raw:
      damages["swapped"] = (step / last).read_bytes()
    for what, content in damages.items():
      damaged = copied(step, tmp_path / f"{n}-{what}".replace(" ", "-"))
      (damaged / file).unlink()
      if content is not None:
        (damaged / file).write_bytes(content)
      if what == "swapped":
        replace(damaged / last, raw)
      assert not passes(damaged), f"{what}: {file}"
      shutil.rmtree(damaged)
    last = file


def test_what_stock_orbax_cannot_load_is_never_passed(tmp_path):
  """Also without digests: MaxText's own checkpoint, with each of its describing files spoilt in ways that parse."""
  sample = support.DATA / "orbax_samples" / "mt_plain_zarr3_dev1_bfloat16" / "0"
  assert passes(sample)
  file = pathlib.Path("items/_METADATA")
  tree = json.loads((sample / file).read_text())
  leaf = next(k for k in tree["tree_metadata"] if "wo" in k)
  spoilt = []
  for member, value in (("use_zarr3", False), ("use_ocdbt", True)):
    spoilt.append({**tree, member: value})
  for change in ({"value_type": "LazyTensor"}, {"value_type": ""}):
    entry = tree["tree_metadata"][leaf]
    spoilt.append({**tree, "tree_metadata": {**tree["tree_metadata"], leaf: {**entry, "value_metadata": {**entry["value_metadata"], **change}}}})
  spoilt.append({**tree, "tree_metadata": {k.replace("wo", "w9"): v for k, v in tree["tree_metadata"].items()}})
  for n, content in enumerate(spoilt):
    damaged = tmp_path / str(n)
    shutil.copytree(sample, damaged)
    replace(damaged / file, json.dumps(content).encode())
    if passes(damaged):
      assert restored(damaged) == restored(sample), content
