"""Memory does not grow with the model: 2.1 GB and twice the layers, scanned, both far below a stacked tensor."""
import pathlib
import shutil

import pytest

import big_model
import support

LIMIT = 128e6


@pytest.mark.parametrize("layers, size", [(22, 2.1e9), (44, 4.0e9)])
def test_peak_memory_stays_small_whatever_the_depth(tmp_path, layers, size):
  written = big_model.write_model(tmp_path / "hf", big_model.llama_config(layers=layers))
  assert 0.95 * size < written < 1.1 * size
  planned = support.to_maxtext(tmp_path / "hf", tmp_path / "out", "scan_layers=true", "--dry_run")
  assert planned.status == 0 and not (tmp_path / "out").exists(), planned
  done = support.to_maxtext(tmp_path / "hf", tmp_path / "out", "scan_layers=true")
  assert done.status == 0, done
  assert done.peak_bytes < LIMIT, f"{done.peak_bytes / 1e6:.0f} MB"
  assert (tmp_path / "out" / "0" / "items").exists()


@pytest.fixture(autouse=True)
def _leave_no_gigabytes_behind(tmp_path):
  yield
  for folder in pathlib.Path(tmp_path).iterdir():
    shutil.rmtree(folder, ignore_errors=True)
