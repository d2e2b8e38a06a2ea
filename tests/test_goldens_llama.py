"""The Llama family through the program and stock Orbax: every leaf of every golden, in every way the command offers."""
import itertools
import json
import shutil

import ml_dtypes
import numpy as np
import pytest

import numpy_llama
import stock
import support

TAGS = ["scan-float32", "scan-bfloat16", "unscan-float32", "unscan-bfloat16"]
SOURCES = {"single file": support.LLAMA / "hf", "three shards": support.LLAMA / "hf_sharded"}


def assert_restores(step, expected: dict) -> None:
  for how, restore in stock.RESTORES.items():
    assert stock.differences(restore(step), expected) == [], how


def files(folder) -> dict[str, bytes]:
  return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("tag", TAGS)
def test_every_way_of_converting_restores_to_the_golden_leaves(tmp_path, tag):
  golden = support.expected("llama3.1-8b", tag)
  for devices, lazy, source in itertools.product([1, 2, 16], [True, False], SOURCES):
    out = tmp_path / f"{devices}-{lazy}-{source.replace(' ', '-')}"
    arguments = support.golden_arguments(golden, devices=devices, lazy=lazy)
    done = support.to_maxtext(SOURCES[source], out, *arguments)
    assert done.status == 0, done
    assert_restores(out / "0", golden["leaves"])
    shutil.rmtree(out)


def test_lazy_and_eager_write_the_same_bytes(tmp_path):
  golden = support.expected("llama3.1-8b", "scan-bfloat16")
  for lazy in True, False:
    done = support.to_maxtext(SOURCES["single file"], tmp_path / str(lazy), *support.golden_arguments(golden, lazy=lazy),
                              environment={"SOURCE_DATE_EPOCH": "1700000000"})
    assert done.status == 0, done
  lazy, eager = (files(tmp_path / str(lazy) / "0") for lazy in (True, False))
  # The markers name the directory they lie in, and nothing else may differ.
  assert {name for name in lazy | eager if lazy.get(name) != eager.get(name) and not name.endswith("commit_success.txt")} == set()


@pytest.mark.parametrize("config", ["absent", "present"])
def test_the_command_line_of_maxtext_works_with_and_without_its_base_yml(tmp_path, config):
  golden = support.expected("llama3.1-8b", "scan-bfloat16")
  base = tmp_path / "src" / "MaxText" / "configs" / "base.yml"
  if config == "present":
    base.parent.mkdir(parents=True)
    # The command line is stronger than the file, the file stronger than the built-in defaults.
    base.write_text("# defaults\nmodel_name: default\nscan_layers: False\nparam_scan_axis: 1\nweight_dtype: float32\n")
  done = support.to_maxtext(SOURCES["single file"], tmp_path / "out", base, *support.golden_arguments(golden, devices=1))
  assert done.status == 0, done
  assert_restores(tmp_path / "out" / "0", golden["leaves"])


def test_base_yml_gives_what_the_command_line_leaves_open(tmp_path):
  golden = support.expected("llama3.1-8b", "unscan-bfloat16")
  base = tmp_path / "base.yml"
  base.write_text("scan_layers: False\n")
  arguments = [a for a in support.golden_arguments(golden) if not a.startswith("scan_layers=")]
  done = support.to_maxtext(SOURCES["single file"], tmp_path / "out", base, *arguments)
  assert done.status == 0, done
  assert_restores(tmp_path / "out" / "0", golden["leaves"])


@pytest.mark.parametrize("zarr3, compression", [("true", None), ("true", "zstd"), ("true", "none"), ("false", None), ("false", "none")])
@pytest.mark.parametrize("ocdbt", ["true", "false"])
@pytest.mark.parametrize("tag", ["scan-bfloat16", "unscan-float32"])
def test_all_storage_forms_and_codecs_restore(tmp_path, ocdbt, zarr3, tag, compression):
  golden = support.expected("llama3.1-8b", tag)
  arguments = support.golden_arguments(golden, checkpoint_storage_use_ocdbt=ocdbt, checkpoint_storage_use_zarr3=zarr3)
  done = support.to_maxtext(SOURCES["single file"], tmp_path / "out", *arguments, *([f"--compression={compression}"] if compression else []))
  assert done.status == 0, done
  items = tmp_path / "out" / "0" / "items"
  assert (items / "manifest.ocdbt").exists() == (ocdbt == "true")
  metadata = json.loads((items / "_METADATA").read_text())
  assert (metadata["use_ocdbt"], metadata["use_zarr3"]) == (ocdbt == "true", zarr3 == "true")
  assert_restores(tmp_path / "out" / "0", golden["leaves"])


def test_blosc_needs_zarr_3_and_says_so(tmp_path):
  done = support.to_maxtext(SOURCES["single file"], tmp_path / "out", "checkpoint_storage_use_zarr3=false", "--compression=blosc")
  assert done.status == support.INVALID_ARGUMENT and "checkpoint_storage_use_zarr3" in done.err, done
  assert support.nothing_published(tmp_path / "out")


def test_recorded_shardings_restore_too(tmp_path):
  golden = support.expected("llama3.1-8b", "scan-bfloat16")
  done = support.to_maxtext(SOURCES["single file"], tmp_path / "out", *support.golden_arguments(golden), "--record_sharding")
  assert done.status == 0, done
  assert (tmp_path / "out" / "0" / "items" / "_sharding").exists()
  assert_restores(tmp_path / "out" / "0", golden["leaves"])


@pytest.mark.parametrize("tag", TAGS)
def test_the_step_says_whether_layers_are_scanned_and_is_marked_finished(tmp_path, tag):
  golden = support.expected("llama3.1-8b", tag)
  done = support.to_maxtext(SOURCES["single file"], tmp_path / "out", *support.golden_arguments(golden))
  assert done.status == 0, done
  step = tmp_path / "out" / "0"
  metadata = json.loads((step / "_CHECKPOINT_METADATA").read_text())
  assert metadata["custom_metadata"]["scan_layers"] is golden["scan_layers"]
  assert (step / "commit_success.txt").exists() and (step / "items" / "commit_success.txt").exists()
  assert not list((tmp_path / "out").glob("*.orbax-checkpoint-tmp*"))


def test_the_log_says_what_maxtext_says(tmp_path):
  golden = support.expected("llama3.1-8b", "scan-bfloat16")
  one = support.to_maxtext(SOURCES["single file"], tmp_path / "one", *support.golden_arguments(golden, devices=1))
  for line in ["Lazy loading ENABLED", "Single device: Skip sharding", "Single device: Materializing lazy weights",
               "Elapse for lazy weight materialization: ", f"Conversion complete. Checkpoint saved to {tmp_path / 'one'}"]:
    assert line in one.text, f"{line!r} is missing in {one}"
  many = support.to_maxtext(SOURCES["single file"], tmp_path / "many", *support.golden_arguments(golden, devices=16))
  assert "Shard weights across 16 devices" in many.text, many


def test_the_model_name_may_be_left_out(tmp_path):
  golden = support.expected("llama3.1-8b", "scan-bfloat16")
  done = support.to_maxtext(SOURCES["single file"], tmp_path / "out", "scan_layers=true", "--save_dtype=bfloat16")
  assert done.status == 0, done
  assert_restores(tmp_path / "out" / "0", golden["leaves"])


@pytest.mark.parametrize("scan", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_another_llama_is_converted_as_the_definition_says(tmp_path, scan, tied, dtype):
  model = support.Model(tmp_path / "hf", shards=2, tie_word_embeddings=tied)
  model.write()
  done = support.to_maxtext(model.folder, tmp_path / "out", f"scan_layers={scan}", f"--save_dtype={dtype}")
  assert done.status == 0, done
  want = numpy_llama.leaves(model.tensors, model.config, scan, getattr(ml_dtypes, dtype, np.float32))
  got = stock.leaves(stock.v0_numpy(tmp_path / "out" / "0"))
  assert set(got) - set(want) == {"step", "opt_state"} and set(want) <= set(got)
  for name, array in want.items():
    assert stock.digest(got[name]) == stock.digest(array) and got[name].dtype == array.dtype, name


def test_float16_sources_are_rounded_to_nearest_even(tmp_path):
  model = support.Model(tmp_path / "hf", torch_dtype="float16")
  rng = np.random.default_rng(1)
  model.tensors = {name: rng.normal(0, 0.05, t.shape).astype(np.float16) for name, t in model.tensors.items()}
  model.write()
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true", "--save_dtype=bfloat16")
  assert done.status == 0, done
  got = stock.leaves(stock.v0_numpy(tmp_path / "out" / "0"))
  for name, array in numpy_llama.leaves(model.tensors, model.config, True).items():
    assert stock.digest(got[name]) == stock.digest(array), name


def test_another_scan_axis_is_honoured(tmp_path):
  config = json.loads((support.LLAMA / "hf" / "config.json").read_text())
  done = support.to_maxtext(SOURCES["single file"], tmp_path / "out", "scan_layers=true", "param_scan_axis=0")
  assert done.status == 0, done
  got = stock.leaves(stock.v0_numpy(tmp_path / "out" / "0"))
  for name, array in numpy_llama.leaves(support.load_tensors(support.LLAMA / "hf"), config, True, scan_axis=0).items():
    assert got[name].shape == array.shape and stock.digest(got[name]) == stock.digest(array), name


@pytest.mark.parametrize("tag", TAGS)
def test_the_second_opinion_agrees_with_the_goldens(tag):
  golden = support.expected("llama3.1-8b", tag)
  config = json.loads((support.LLAMA / "hf" / "config.json").read_text())
  dtype = getattr(ml_dtypes, golden["save_dtype"], np.float32)
  leaves = numpy_llama.leaves(support.load_tensors(support.LLAMA / "hf"), config, golden["scan_layers"], dtype)
  for name, array in leaves.items():
    assert stock.digest(array) == golden["leaves"][name]["sha256"], name
  assert set(golden["leaves"]) - set(leaves) == {"step", "opt_state"}
