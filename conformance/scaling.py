"""How time and memory grow with a model's size: converts synthetic Llamas in both directions, scanned and unscanned.

usage: scaling.py [--layers 22,85,215] [--folder FOLDER]

Prints a Markdown table: bytes, seconds and peak resident memory. 215 layers are 20 GB and need 60 GB of disk.
"""
import argparse
import os
import pathlib
import shutil
import tempfile

import big_model
import measured

PROGRAM = pathlib.Path(os.environ.get("MAXPORT_PROGRAM", pathlib.Path(__file__).resolve().parent.parent / "build" / "maxport"))


def run(*arguments) -> str:
  done = measured.run([PROGRAM, *arguments])
  assert done.status == 0, done.err[-2000:]
  return f"{done.seconds:.1f} s, {done.peak_bytes / 1e6:.0f} MB"


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--layers", default="22,85,215")
  parser.add_argument("--folder", default=None)
  arguments = parser.parse_args()
  print("| source | layers | to MaxText | back |\n| --- | --- | --- | --- |")
  for layers in map(int, arguments.layers.split(",")):
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
      source, out, back = (pathlib.Path(folder) / name for name in ("hf", "out", "back"))
      size = big_model.write_model(source, big_model.llama_config(layers=layers))
      for scan in "true", "false":
        forward = run("to_maxtext", f"base_output_directory={out}", f"--hf_model_path={source}", f"scan_layers={scan}")
        backward = run("to_huggingface", f"load_parameters_path={out / '0'}", f"base_output_directory={back}", "weight_dtype=bfloat16")
        print(f"| {size / 1e9:.1f} GB | {layers}, {'scanned' if scan == 'true' else 'unscanned'} | {forward} | {backward} |", flush=True)
        shutil.rmtree(out)
        shutil.rmtree(back)


if __name__ == "__main__":
  main()
