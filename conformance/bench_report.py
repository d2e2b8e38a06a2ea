"""Turns the results of bench.py into docs/performance.md and docs/performance.svg.

usage: bench_report.py      (from build/bench.json)
"""
import json
import pathlib
from xml.sax.saxutils import escape

HEAD = """# Performance

`make bench` makes a synthetic Llama of {gb:.2f} GB (bfloat16, {layers} layers, scanned), converts it with every codec, both
ways, beside `cp` and MaxText 0.2.5's own converter, all in one run on one machine with {cores} cores and a warm page cache,
and writes this page (`conformance/bench.py --write`). Restoring, start and kernels are measured after that on the same machine.
Times of conversions are those of whole processes, the best of {repeat} (MaxText: of one).
Nothing is synced to the disk unless the row says so; MaxText's converter does not sync either.

![time and memory](performance.svg)

"""


def rows(results: dict, group: str) -> list[dict]:
  return [row for row in results["rows"] if row["group"] == group]


def reference(results: dict, group: str, name: str) -> float | None:
  return next((row["seconds"] for row in rows(results, group) if row["name"] == name), None)


def ratio(seconds: float, other: float | None) -> str:
  return f"{seconds / other:.2f}" if other else "-"


def print_ratios(results: dict) -> None:
  copying = reference(results, "to MaxText", "cp")
  for group in "to MaxText", "to Hugging Face":
    theirs = reference(results, group, "MaxText's converter")
    for row in rows(results, group):
      print(f"{group:16}{row['name']:34}{ratio(row['seconds'], copying):>7} of cp"
            + (f"  1/{theirs / row['seconds']:.0f} of MaxText's converter" if theirs else ""))


def table(results: dict, group: str) -> str:
  copying, theirs = reference(results, "to MaxText", "cp"), reference(results, group, "MaxText's converter")
  text = f"## {group[0].upper() + group[1:]}\n\n| | time | of `cp` | of MaxText's converter | peak memory | written |\n| --- | --- | --- | --- | --- | --- |\n"
  for row in rows(results, group):
    text += (f"| {row['name']} | {row['seconds']:.2f} s | {ratio(row['seconds'], copying)} | {ratio(row['seconds'], theirs)} | "
             f"{row['peak_bytes'] / 1e6:.0f} MB | {row['written'] / 1e9:.2f} GB |\n")
  return text + "\n"


KERNELS_HEAD = """## Kernels

Single kernels on one core, in memory, bytes read and written a second (`src/tensor/tensor_bench.cc`,
`src/zarr/zarr_bench.cc`; the codecs count raw bytes of 2 MiB chunks of weights).

| kernel | GB/s | smaller by |
| --- | --- | --- |
"""

DECISIONS = """
## What was tried and left

- `copy_file_range` for data that is stored as it is: every chunk carries a CRC-32C and has its digest recorded, so its bytes
  pass through the processor anyway, and nothing lies at the same offset of a block in both files, so that no file system
  could share extents. `cp` uses it.
- Reading through `mmap`: a page fault each 64 KiB costs what the copy saves, and a source that is cut meanwhile ends the
  process instead of giving an error.
- LZ4 on bit planes as the default (`--compression=lz4`): it finds the exponent's constant bits but cannot use that the
  others are uneven, so it leaves an eighth more, and is made no faster.
- Zstandard's own coder on the same bytes: the rows `zstd` show its speed. It looks for repetitions that weights do not have.
- Codes longer than 7 bits for frequent values: eight codes then no longer fit one word, which costs more than the 0.4 % that
  they would save.
- Letting files grow block by block: the file system then looks for each one. The expected size is set aside first
  (`fallocate`), and what is left is given back.
- The blosc library's own bit planes: its Debian build has no vectors wider than 16 bytes and takes 2.8 times as long.
"""


def restore_table(results: dict) -> str:
  loaders = {"numpy": "stock Orbax v0, NumPy arrays", "maxtext": "MaxText's load_params_from_path, 16 devices"}
  loaders = {loader: title for loader, title in loaders.items() if rows(results, f"restore, {loader}")}
  text = ("## Restoring\n\nCheckpoint after checkpoint, round after round, best of the rounds, without imports and a process' first load "
          "(`conformance/bench_restore.py`).\n\n")
  text += "| checkpoint | " + " | ".join(f"{title} | of MaxText's own" for title in loaders.values()) + " |\n|" + " --- |" * (1 + 2 * len(loaders)) + "\n"
  for row in rows(results, f"restore, {next(iter(loaders))}"):
    text += "| " + ("MaxText's own" if row["name"] == "theirs" else row["name"].replace("ours-", "maxport, "))
    for loader in loaders:
      group = f"restore, {loader}"
      seconds = reference(results, group, row["name"])
      text += f" | {seconds:.2f} s | {ratio(seconds, reference(results, group, 'theirs'))}"
    text += " |\n"
  return text


def start_table(results: dict) -> str:
  text = "\n## Start\n\nFrom the start of the process to its end (`--help`) or until the first file of chunks exists (`conformance/bench_start.py`).\n\n"
  text += "| | best | median |\n| --- | --- | --- |\n"
  return text + "".join(f"| {row['name']} | {row['seconds'] * 1000:.0f} ms | {row['median'] * 1000:.0f} ms |\n" for row in rows(results, "start"))


def kernel_table(results: dict) -> str:
  if not results.get("kernels"):
    return ""
  return KERNELS_HEAD + "".join(
      f"| {row['name'].removeprefix('BM_')} | {row['bytes_per_second'] / 1e9:.1f} | {format(row['ratio'], '.2f') if row['ratio'] else ''} |\n"
      for row in results["kernels"])


def plot(results: dict) -> str:
  """Bars of time on a logarithmic scale, peak memory as text."""
  import math
  shown = [row for row in results["rows"] if row["group"].startswith("to ")]
  height, left, width = 22, 330, 420
  low, high = 0.3, max(row["seconds"] for row in shown) * 1.3
  x = lambda seconds: left + width * math.log(max(seconds, low) / low) / math.log(high / low)
  parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 190} {height * len(shown) + 50}" font-family="sans-serif" font-size="13">',
           '<rect width="100%" height="100%" fill="white"/>']
  for tick in (0.5, 1, 2, 5, 10, 20, 50, 100):
    if low <= tick <= high:
      parts.append(f'<line x1="{x(tick):.0f}" x2="{x(tick):.0f}" y1="6" y2="{height * len(shown) + 14}" stroke="#ddd"/>'
                   f'<text x="{x(tick):.0f}" y="{height * len(shown) + 32}" text-anchor="middle" fill="#555">{tick} s</text>')
  for n, row in enumerate(shown):
    y = 10 + n * height
    color = "#b04a3a" if "MaxText's converter" in row["name"] else "#8a8a8a" if row["name"] == "cp" else "#3a6fb0"
    parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(row["group"] + ": " + row["name"])}</text>'
                 f'<rect x="{left}" y="{y + 2}" width="{x(row["seconds"]) - left:.0f}" height="{height - 6}" fill="{color}"/>'
                 f'<text x="{x(row["seconds"]) + 6:.0f}" y="{y + 14}" fill="#333">{row["seconds"]:.2f} s, {row["peak_bytes"] / 1e6:,.0f} MB</text>')
  return "\n".join(parts + ["</svg>\n"])


def write(results: dict, docs: pathlib.Path) -> None:
  text = HEAD.format(gb=results["bytes"] / 1e9, layers=results["layers"], cores=results["cores"], repeat=results["repeat"])
  text += table(results, "to MaxText") + table(results, "to Hugging Face")
  text += restore_table(results)
  text += start_table(results)
  (docs / "performance.md").write_text(text + "\n" + kernel_table(results) + DECISIONS)
  (docs / "performance.svg").write_text(plot(results))


if __name__ == "__main__":
  here = pathlib.Path(__file__).resolve().parent.parent
  write(json.loads((here / "build" / "bench.json").read_text()), here / "docs")
