"""Checkpoints as trainers leave them: saved by stock Orbax from sharded arrays, so that each chunk holds a device's part
of all layers. Those are cut anew on the way back (src/engine/rechunked.h)."""
import pathlib
import random
import signal
import subprocess
import time

import jax
import numpy as np
import orbax.checkpoint as ocp
import pytest

import big_model
import stock
import support

BIG = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 9, "num_attention_heads": 16,
       "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 2048}


def save_sharded(tree, step: pathlib.Path) -> None:
  """Everything that four devices can share along the first axis is shared so."""
  def place(leaf):
    if not isinstance(leaf, np.ndarray) or not leaf.shape:
      return leaf
    return jax.device_put(leaf, stock.sharding("x") if leaf.shape[0] % 4 == 0 else stock.sharding())

  ocp.PyTreeCheckpointer().save(step / "items", jax.tree.map(place, tree))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """The source, and a checkpoint of it by stock Orbax: 19 MB a chunk, in runs of 512 bytes."""
  folder = tmp_path_factory.mktemp("trained")
  config = big_model.llama_config(layers=BIG["num_hidden_layers"]) | BIG
  big_model.write_model(folder / "hf", config)
  done = support.to_maxtext(folder / "hf", folder / "ours", "scan_layers=true", "--nosync")
  assert done.status == 0, done
  save_sharded(stock.v0_numpy(folder / "ours" / "0"), folder / "stock" / "0")
  return folder


def back_command(trained, out, *arguments) -> list[str]:
  return ["to_huggingface", f"load_parameters_path={trained}/stock/0/items", f"base_output_directory={out}",
          f"--hf_model_path={trained}/hf", "weight_dtype=bfloat16", *arguments]


def same_tensors(a: pathlib.Path, b: pathlib.Path) -> bool:
  one, two = support.load_tensors(a), support.load_tensors(b)
  return one.keys() == two.keys() and all(np.array_equal(one[n].view(np.uint16), two[n].view(np.uint16)) for n in one)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_way_back_gives_the_source_in_little_memory(trained, tmp_path, threads):
  done = support.run(*back_command(trained, tmp_path / "back", f"--threads={threads}"))
  assert done.status == 0, done
  assert same_tensors(tmp_path / "back", trained / "hf")
  assert sorted(p.name for p in (tmp_path / "back").iterdir()) == ["config.json", "model.safetensors"]
  assert done.peak_bytes < 128e6, done


def test_a_killed_run_leaves_nothing_and_is_continued(trained, tmp_path):
  rng, out = random.Random(4), tmp_path / "back"
  whole = support.run(*back_command(trained, tmp_path / "undisturbed"))
  assert whole.status == 0, whole
  for _ in range(8):
    process = subprocess.Popen([str(support.PROGRAM), *map(str, back_command(trained, out))], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    time.sleep(rng.uniform(0.05, whole.seconds * 0.8))
    process.send_signal(signal.SIGKILL)
    process.wait()
    if out.exists():
      break
  done = support.run(*back_command(trained, out, *(["--overwrite"] if out.exists() else [])))
  assert done.status == 0, done
  assert same_tensors(out, trained / "hf")
  assert not list(tmp_path.glob("*.maxport-tmp")) and not list(out.glob("tiles-*"))


def test_a_data_file_that_was_cut_is_named_and_nothing_is_left(trained, tmp_path):
  """Stock chunks have no checksum, so that a changed byte is not always seen; missing ones are."""
  data = max((p for p in (trained / "stock" / "0" / "items").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
  whole = data.read_bytes()
  try:
    data.write_bytes(whole[:len(whole) // 3])
    done = support.run(*back_command(trained, tmp_path / "back"))
  finally:
    data.write_bytes(whole)
  assert done.status == support.CORRUPT_DATA and "chunk" in done.err and data.name in done.err, done
  assert not (tmp_path / "back").exists()
