"""Time and memory of a conversion beside copying the same files, and beside MaxText's own converter.

usage: bench.py [--layers 22] [--repeat 3] [--maxtext PYTHON]

Makes a synthetic Llama (2.1 GB with 22 layers), converts it with every codec, all in one run, and prints the best of
`repeat` times and their ratio to `cp`. MAXPORT_MAXTEXT or --maxtext names an interpreter that has MaxText; without one
its converter is left out. The page cache is warm for all.
"""
import argparse
import os
import pathlib
import shutil
import tempfile

import big_model
import measured

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("MAXPORT_PROGRAM", REPOSITORY / "build" / "maxport"))


def folder_bytes(folder: pathlib.Path) -> int:
  return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def best(command: list, out: pathlib.Path, repeat: int) -> tuple[measured.Measured, int]:
  """The fastest of some runs, each to an empty place, and the bytes it wrote."""
  runs = []
  for _ in range(repeat):
    shutil.rmtree(out, ignore_errors=True)
    done = measured.run(command)
    assert done.status == 0, done.err[-3000:]
    runs.append(done)
  written = folder_bytes(out)
  shutil.rmtree(out)
  return min(runs, key=lambda run: run.seconds), written


def commands(source: pathlib.Path, out: pathlib.Path, config: dict, maxtext: str | None) -> dict[str, list]:
  to_maxtext = [PROGRAM, "to_maxtext", f"base_output_directory={out}", f"--hf_model_path={source}", "scan_layers=true"]
  found = {"cp": ["cp", "-r", source, out]}
  found |= {f"maxport, {codec}": [*to_maxtext, f"--compression={codec}"] for codec in ("blosc", "zstd", "none")}
  if maxtext:
    settings = {"base_emb_dim": "hidden_size", "base_num_query_heads": "num_attention_heads", "base_num_kv_heads": "num_key_value_heads",
                "base_num_decoder_layers": "num_hidden_layers", "base_mlp_dim": "intermediate_size", "head_dim": "head_dim",
                "vocab_size": "vocab_size"}
    found["MaxText's converter"] = [maxtext, REPOSITORY / "conformance" / "maxtext_convert.py", "llama3.1-8b", source, out,
                                    "--save_dtype=bfloat16", "scan_layers=true", *(f"{key}={config[field]}" for key, field in settings.items())]
  return found


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--layers", type=int, default=22)
  parser.add_argument("--repeat", type=int, default=3)
  parser.add_argument("--maxtext", default=os.environ.get("MAXPORT_MAXTEXT"))
  arguments = parser.parse_args()
  config = big_model.llama_config(layers=arguments.layers)
  with tempfile.TemporaryDirectory() as folder:
    source, out = pathlib.Path(folder) / "hf", pathlib.Path(folder) / "out"
    size = big_model.write_model(source, config)
    print(f"{size / 1e9:.2f} GB, bfloat16, {arguments.layers} layers, scanned, {os.cpu_count()} cores\n")
    print(f"{'':22}{'time':>9}{'of cp':>8}{'peak memory':>13}{'written':>10}")
    copying = None
    for name, command in commands(source, out, config, arguments.maxtext).items():
      done, written = best(command, out, 1 if "MaxText" in name else arguments.repeat)
      copying = copying or done.seconds
      print(f"{name:22}{done.seconds:7.2f} s{done.seconds / copying:7.2f}x{done.peak_bytes / 1e6:10.0f} MB{written / 1e9:7.2f} GB", flush=True)


if __name__ == "__main__":
  main()
