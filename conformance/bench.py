"""Time and memory of conversions beside copying the same files and beside MaxText's own converter, in one run.

usage: bench.py [--layers 22] [--repeat 5] [--maxtext PYTHON] [--write]

Makes a synthetic Llama (2.2 GB with 22 layers), converts it in both directions with every codec, with one and with all
threads, with and without syncing, restores the results with stock Orbax, and times the program's start. Prints the best of `repeat` times.
MAXPORT_MAXTEXT or --maxtext names an interpreter that has MaxText; without one its converter is left out. The page cache
is warm for all. --write puts table and plot into docs/performance.md and docs/performance.svg.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

import bench_report
import bench_start
import big_model
import measured

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("MAXPORT_PROGRAM", REPOSITORY / "build" / "maxport"))
SETTINGS = {"base_emb_dim": "hidden_size", "base_num_query_heads": "num_attention_heads", "base_num_kv_heads": "num_key_value_heads",
            "base_num_decoder_layers": "num_hidden_layers", "base_mlp_dim": "intermediate_size", "head_dim": "head_dim",
            "vocab_size": "vocab_size"}
MAXTEXT_LOADS = 3


def folder_bytes(folder: pathlib.Path) -> int:
  return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


class Bench:
  def __init__(self, folder: pathlib.Path, layers: int, repeat: int, maxtext: str | None):
    self.folder, self.repeat, self.maxtext = folder, repeat, maxtext
    self.config = big_model.llama_config(layers=layers)
    self.source = folder / "hf"
    self.size = big_model.write_model(self.source, self.config)
    self.rows = []

  def run(self, group: str, name: str, command: list, out: pathlib.Path, repeat: int | None = None, keep: bool = False) -> None:
    runs = []
    for _ in range(repeat or self.repeat):
      shutil.rmtree(out, ignore_errors=True)
      os.sync()  # what earlier runs left to be written must not burden this one
      done = measured.run(command)
      assert done.status == 0, done.err[-3000:]
      runs.append(done)
    best = min(runs, key=lambda run: run.seconds)
    row = {"group": group, "name": name, "seconds": best.seconds, "peak_bytes": best.peak_bytes, "written": folder_bytes(out)}
    self.rows.append(row)
    if not keep:
      shutil.rmtree(out)
    print(f"{group:16}{name:34}{row['seconds']:8.2f} s{row['peak_bytes'] / 1e6:9.0f} MB{row['written'] / 1e9:7.2f} GB", flush=True)

  def maxtext_settings(self) -> list[str]:
    return ["scan_layers=true", *(f"{key}={self.config[field]}" for key, field in SETTINGS.items())]

  def to_maxtext(self) -> None:
    group = "to MaxText"
    copy = self.folder / "copy"
    self.run(group, "cp", ["cp", "-r", self.source, copy], copy)
    self.run(group, "cp, then sync", ["bash", "-c", 'cp -r "$0" "$1" && sync -f "$1"', self.source, copy], copy)
    base = [PROGRAM, "to_maxtext", f"--hf_model_path={self.source}", "scan_layers=true"]
    for codec in "blosc", "lz4", "zstd", "none":
      for threads in 1, os.cpu_count():
        out = self.folder / "out"
        self.run(group, f"{codec}, {threads} thread{'s'[:threads > 1]}",
                 [*base, f"base_output_directory={out}", f"--compression={codec}", f"--threads={threads}", "--nosync"], out)
      out = self.folder / f"ours-{codec}"
      self.run(group, f"{codec}, all threads, synced", [*base, f"base_output_directory={out}", f"--compression={codec}"], out, keep=True)
    if self.maxtext:
      out = self.folder / "theirs"
      self.run(group, "MaxText's converter", [self.maxtext, REPOSITORY / "conformance" / "maxtext_convert.py", "llama3.1-8b", self.source, out,
                                              "--save_dtype=bfloat16", *self.maxtext_settings()], out, repeat=1, keep=True)

  def back(self) -> None:
    group = "to Hugging Face"
    for name, checkpoint in [("blosc", "ours-blosc"), ("none", "ours-none"), ("MaxText's checkpoint", "theirs")]:
      if not (self.folder / checkpoint).exists():
        continue
      out = self.folder / "back"
      command = [PROGRAM, "to_huggingface", f"load_parameters_path={self.folder / checkpoint / '0'}", f"base_output_directory={out}",
                 f"--hf_model_path={self.source}", "weight_dtype=bfloat16"]
      for threads in 1, os.cpu_count():
        self.run(group, f"{name}, {threads} thread{'s'[:threads > 1]}", [*command, f"--threads={threads}", "--nosync"], out)
      self.run(group, f"{name}, all threads, synced", command, out)
    if self.maxtext:
      out = self.folder / "back"
      self.run(group, "MaxText's converter", [self.maxtext, REPOSITORY / "conformance" / "maxtext_to_huggingface.py", "llama3.1-8b",
                                              self.folder / "theirs" / "0" / "items", self.source, out, "weight_dtype=bfloat16",
                                              *self.maxtext_settings()], out, repeat=1)

  def restore(self) -> None:
    names = [name for name in ("ours-blosc", "ours-lz4", "ours-zstd", "ours-none", "theirs") if (self.folder / name).exists()]
    script = REPOSITORY / "conformance" / "bench_restore.py"
    steps = [self.folder / name / "0" for name in names]
    times = {("numpy", name): seconds for name, seconds in zip(names, self.seconds([sys.executable, script, "numpy", self.repeat, *steps]))}
    # MaxText keeps memory of every load, so each has a process of its own, which loads twice; the second counts.
    for _ in range(MAXTEXT_LOADS if self.maxtext else 0):
      for name, step in zip(names, steps):
        times.setdefault(("maxtext", name), []).extend(self.seconds([self.maxtext, script, "maxtext", 1, step])[0])
    for (loader, name), seconds in times.items():
      self.rows.append({"group": f"restore, {loader}", "name": name, "seconds": min(seconds), "peak_bytes": 0, "written": 0})
      print(f"{'restore, ' + loader:18}{name:34}{min(seconds):8.2f} s", flush=True)

  def seconds(self, command: list) -> list[list[float]]:
    done = measured.run(command)
    assert done.status == 0, f"status {done.status}\n{done.err[-2000:]}"
    return json.loads(done.out.splitlines()[-1])


KERNELS = [("tensor_bench", r"BM_memcpy/4194304$|BM_cast/(bf16_f32|f32_bf16|f16_bf16|e4m3fn_bf16)|BM_transpose/bf16/(512/4096|1024/2048|4096/512)$"
                            r"|BM_multiply/bf16"),
           ("zarr_bench", r"/(none|blosc|lz4|zstd)$")]


def kernels(folder: pathlib.Path) -> list[dict]:
  """Bytes a second of single kernels, in memory; see src/tensor/tensor_bench.cc and src/zarr/zarr_bench.cc."""
  found = []
  for program, names in KERNELS:
    if not (folder / program).exists():
      continue
    done = measured.run([folder / program, f"--benchmark_filter={names}", "--benchmark_format=json", "--benchmark_min_time=0.5"])
    assert done.status == 0, done.err
    found += [{"name": b["name"], "bytes_per_second": b["bytes_per_second"], "ratio": b.get("ratio")} for b in json.loads(done.out)["benchmarks"]]
  return found


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--layers", type=int, default=22)
  parser.add_argument("--repeat", type=int, default=5)
  parser.add_argument("--maxtext", default=os.environ.get("MAXPORT_MAXTEXT"))
  parser.add_argument("--write", action="store_true")
  parser.add_argument("--kernels", type=pathlib.Path, default=REPOSITORY / "build-dev", help="folder of tensor_bench and zarr_bench")
  arguments = parser.parse_args()
  with tempfile.TemporaryDirectory() as folder:
    bench = Bench(pathlib.Path(folder), arguments.layers, arguments.repeat, arguments.maxtext)
    print(f"{bench.size / 1e9:.2f} GB, bfloat16, {arguments.layers} layers, scanned, {os.cpu_count()} cores")
    bench.to_maxtext()
    bench.back()
    bench.restore()
    bench.rows += bench_start.measure(bench.folder, 9)
  results = {"bytes": bench.size, "layers": arguments.layers, "cores": os.cpu_count(), "repeat": bench.repeat, "rows": bench.rows,
             "kernels": kernels(arguments.kernels)}
  (REPOSITORY / "build").mkdir(exist_ok=True)
  (REPOSITORY / "build" / "bench.json").write_text(json.dumps(results, indent=1))
  bench_report.print_ratios(results)
  if arguments.write:
    bench_report.write(results, REPOSITORY / "docs")


if __name__ == "__main__":
  main()
