"""A killed run leaves no step under its final name, or a complete one; the next run is not disturbed by what it left."""
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

import numpy_llama
import stock
import support

KILLS = {"ocdbt": 100, "plain": 50}
ENVIRONMENT = {"SOURCE_DATE_EPOCH": "1700000000"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  """Large enough that a conversion takes a while: 40 MB."""
  built = support.Model(tmp_path_factory.mktemp("killed") / "hf", shards=2, hidden_size=512, intermediate_size=1408, num_hidden_layers=6,
                        num_attention_heads=8, num_key_value_heads=4, head_dim=64, vocab_size=4096)
  built.write()
  return built


def expected_leaves(model) -> dict:
  return {name: stock.digest(array) for name, array in numpy_llama.leaves(model.tensors, model.config, True).items()}


def restored(step) -> dict:
  return {name: stock.digest(leaf) for name, leaf in stock.leaves(stock.v0_numpy(step)).items() if name.startswith("params.")}


def stored(step) -> dict[str, bytes]:
  """Every file; commit_success.txt holds the folder's name."""
  return {p.relative_to(step).as_posix(): p.read_bytes() for p in step.rglob("*") if p.is_file() and p.name != "commit_success.txt"}


def command(model, out, *arguments) -> list[str]:
  return [str(support.PROGRAM), "to_maxtext", f"base_output_directory={out}", f"--hf_model_path={model.folder}", "scan_layers=true", *arguments]


@pytest.mark.parametrize("form", ["ocdbt", "plain"])
def test_sigkill_at_any_moment_leaves_nothing_or_everything(model, tmp_path, form):
  arguments = [f"checkpoint_storage_use_ocdbt={form == 'ocdbt'}"]
  want = expected_leaves(model)
  undisturbed = support.run(*command(model, tmp_path / "undisturbed", *arguments)[1:], environment=ENVIRONMENT)
  assert undisturbed.status == 0, undisturbed
  assert restored(tmp_path / "undisturbed" / "0") == want
  want_files = stored(tmp_path / "undisturbed" / "0")

  rng, out, window = random.Random(2), tmp_path / "out", undisturbed.seconds
  finished = killed = 0
  while killed < KILLS[form]:
    process = subprocess.Popen(command(model, out, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=os.environ | ENVIRONMENT)
    time.sleep(rng.uniform(0, window))
    process.send_signal(signal.SIGKILL)
    killed += process.wait() == -signal.SIGKILL
    if (out / "0").exists():
      assert stored(out / "0") == want_files
      finished += 1
      shutil.rmtree(out)
      window *= 0.9  # the machine is faster than it was: keep most kills inside the run
    else:
      window *= 1.05
  assert finished, "no run came to its end: the last moments were not tried"

  # The remains of the last kills are still there.
  last = support.run(*command(model, out, *arguments)[1:], environment=ENVIRONMENT)
  assert last.status == 0, last
  assert stored(out / "0") == want_files
  assert not list(out.glob("*.orbax-checkpoint-tmp*"))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_run_cleanly(model, tmp_path, name):
  slow = ["--threads=1", "--compression=zstd"]
  undisturbed = support.run(*command(model, tmp_path / "undisturbed", *slow)[1:])
  assert undisturbed.status == 0, undisturbed
  stopped, rng = 0, random.Random(6)
  for attempt in range(60):
    out = tmp_path / f"out-{attempt}"
    process = subprocess.Popen(command(model, out, *slow), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(rng.uniform(0.1, 0.8) * undisturbed.seconds)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=30)
    if process.returncode == support.INTERRUPTED:
      stopped += 1
      assert support.nothing_published(out)
      assert "same command" in err, err
      if stopped == 3:
        break
    else:
      # Before the handlers stand the system ends it; after the last chunk it may finish.
      assert process.returncode in (0, -getattr(signal, name)), err
  assert stopped, "no run was stopped while it worked"


def test_a_finished_checkpoint_is_not_overwritten_unasked(model, tmp_path):
  first = support.run(*command(model, tmp_path / "out")[1:])
  assert first.status == 0, first
  before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*") if p.is_file()}
  second = support.run(*command(model, tmp_path / "out")[1:])
  assert second.status == support.INVALID_ARGUMENT and "--overwrite" in second.err, second
  assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*") if p.is_file()} == before
  third = support.run(*command(model, tmp_path / "out", "--overwrite")[1:])
  assert third.status == 0, third
  assert restored(tmp_path / "out" / "0") == expected_leaves(model)
