"""The command line itself: spellings, help, nearest names, where data and talk go."""
import json
import re
import subprocess

import pytest

import numpy_llama
import stock
import support
from support import INVALID_ARGUMENT


@pytest.fixture
def model(tmp_path):
  built = support.Model(tmp_path / "hf")
  built.write()
  return built


def scanned(step) -> bool:
  return any(".layers." in name for name in stock.leaves(stock.v0_numpy(step)))


@pytest.mark.parametrize("words, scan", [
    (["scan_layers=true"], True), (["scan_layers=True"], True), (["scan_layers=false"], False), (["scan_layers=False"], False),
    (["--scan_layers=false"], False), (["--scan-layers=false"], False), (["scan-layers=true"], True)])
def test_settings_may_be_spelt_as_people_spell_them(model, tmp_path, words, scan):
  done = support.to_maxtext(model.folder, tmp_path / "out", *words)
  assert done.status == 0, done
  assert scanned(tmp_path / "out" / "0") == scan


@pytest.mark.parametrize("words", [
    ["--save_dtype=float32"], ["--save-dtype=float32"], ["save_dtype=float32"], ["--save_dtype", "float32"]])
def test_options_may_be_spelt_as_people_spell_them(model, tmp_path, words):
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true", *words)
  assert done.status == 0, done
  got = stock.leaves(stock.v0_numpy(tmp_path / "out" / "0"))
  assert str(got["params.params.decoder.decoder_norm.scale"].dtype) == "float32"


@pytest.mark.parametrize("words", [["--lazy_load_tensors=false"], ["--nolazy_load_tensors"], ["lazy_load_tensors=False"]])
def test_lazy_loading_can_be_switched_off_in_every_spelling(model, tmp_path, words):
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true", *words)
  assert done.status == 0 and "Lazy loading ENABLED" not in done.text, done


@pytest.mark.parametrize("word, nearest", [
    ("scan_layer=true", "scan_layers"), ("base_num_decoder_layer=3", "base_num_decoder_layers"), ("--sav_dtype=float32", "save_dtype"),
    ("--compresion=zstd", "compression"), ("--dryrun", "dry_run")])
def test_an_unknown_name_is_refused_with_the_nearest_known_one(model, tmp_path, word, nearest):
  done = support.to_maxtext(model.folder, tmp_path / "out", word)
  assert done.status == INVALID_ARGUMENT and nearest in done.err and word.strip("-").split("=")[0] in done.err, done
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("word, says", [
    ("--save_dtype=float31", "float31"), ("scan_layers=perhaps", "scan_layers"), ("--simulated_cpu_devices_count=0", "simulated_cpu_devices_count"),
    ("--simulated_cpu_devices_count=many", "simulated_cpu_devices_count"), ("--compression=gzip", "gzip"), ("--threads=0", "threads"),
    ("--max_memory=lots", "max_memory"), ("--head=maybe", "maybe")])
def test_a_value_that_makes_no_sense_is_refused(model, tmp_path, word, says):
  done = support.to_maxtext(model.folder, tmp_path / "out", word)
  assert done.status == INVALID_ARGUMENT and says in done.err, done
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("missing", ["base_output_directory", "hf_model_path"])
def test_what_is_missing_is_named(model, tmp_path, missing):
  words = [w for w in (f"base_output_directory={tmp_path / 'out'}", f"--hf_model_path={model.folder}") if missing not in w]
  done = support.run("to_maxtext", *words)
  assert done.status == INVALID_ARGUMENT and missing in done.err, done


def test_an_unknown_command_is_refused():
  done = support.run("to_maxtxt")
  assert done.status == INVALID_ARGUMENT and "to_maxtxt" in done.err, done


def test_help_is_for_newcomers():
  for words in ["--help"], ["to_maxtext", "--help"]:
    done = support.run(*words)
    assert done.status == 0 and done.err == "", done
    assert "usage: maxport" in done.out
  for option in ["--hf_model_path", "--save_dtype", "--simulated_cpu_devices_count", "--compression", "--dry_run", "--overwrite", "scan_layers"]:
    assert option in done.out, option
  assert max(map(len, done.out.splitlines())) <= 140


def test_the_version_is_printed():
  done = support.run("--version")
  assert done.status == 0 and re.fullmatch(r"maxport \d+\.\d+\.\d+\n", done.out), done


def test_talk_goes_to_standard_error_and_data_to_standard_output(model, tmp_path):
  quiet = support.to_maxtext(model.folder, tmp_path / "a", "scan_layers=true")
  assert quiet.status == 0 and quiet.out == "" and "Conversion complete" in quiet.err, quiet
  report = support.to_maxtext(model.folder, tmp_path / "b", "scan_layers=true", "--json")
  assert report.status == 0 and json.loads(report.out)["leaves"] == 12, report


def test_without_a_terminal_there_are_no_control_characters(model, tmp_path):
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  assert not set(done.text) & {"\r", "\x1b"}, done


def test_a_dry_run_accounts_for_every_tensor_and_writes_nothing(model, tmp_path):
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true", "--dry_run")
  assert done.status == 0 and not (tmp_path / "out").exists(), done
  assert re.search(rf"\b{len(model.tensors)} used\b", done.out), done
  assert re.search(r"peak memory +\d", done.out), done
  report = json.loads(support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true", "--dry_run", "--json").out)
  names = set(numpy_llama.leaves(model.tensors, model.config, True))
  assert {"account", "plan", "memory"} <= set(report) and len(report["plan"]["leaves"]) == len(names)


def test_the_forecast_of_memory_holds(model, tmp_path):
  report = json.loads(support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true", "--dry_run", "--json").out)
  done = support.to_maxtext(model.folder, tmp_path / "out", "scan_layers=true")
  assert done.peak_bytes <= report["memory"]["peak_memory"] + 20e6, done


def with_open_files(soft: int, hard: int, *arguments) -> subprocess.CompletedProcess:
  """The program where only so many files may be open; the soft limit is one that it may raise."""
  return subprocess.run(["prlimit", f"--nofile={soft}:{hard}", support.PROGRAM, *arguments], capture_output=True, text=True)


def test_too_few_open_files_are_noticed_before_anything_is_written(model, tmp_path):
  forward = ["to_maxtext", f"--hf_model_path={model.folder}", f"base_output_directory={tmp_path / 'out'}"]
  done = with_open_files(20, 20, *forward)
  assert done.returncode == support.RESOURCE_LIMIT and "ulimit -n" in done.stderr, done
  assert not (tmp_path / "out").exists()
  done = with_open_files(20, 1024, *forward)
  assert done.returncode == 0, done
  back = ["to_huggingface", f"load_parameters_path={tmp_path / 'out' / '0'}", f"base_output_directory={tmp_path / 'back'}",
          f"--hf_model_path={model.folder}", "weight_dtype=bfloat16"]
  done = with_open_files(40, 40, *back)
  assert done.returncode == support.RESOURCE_LIMIT and "ulimit -n" in done.stderr, done
  assert not (tmp_path / "back").exists()
  done = with_open_files(40, 1024, *back)
  assert done.returncode == 0, done


def test_the_same_bytes_whatever_the_threads_and_the_memory(model, tmp_path):
  def files(name, *arguments):
    done = support.to_maxtext(model.folder, tmp_path / name, "scan_layers=true", *arguments, environment={"SOURCE_DATE_EPOCH": "1700000000"})
    assert done.status == 0, done
    items = tmp_path / name / "0" / "items"
    return {p.relative_to(items).as_posix(): p.read_bytes() for p in items.rglob("*") if p.is_file() and p.name != "commit_success.txt"}

  one = files("one", "--threads=1")
  assert files("three", "--threads=3") == one
  assert files("small", "--max_memory=48MB") == one
