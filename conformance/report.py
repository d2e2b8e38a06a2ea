"""Writes docs/conformance.md from build/conformance.jsonl, the results of `make conformance`."""
import json
import pathlib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent

HEAD = """# Conformance

MaxText 0.2.5 itself loads the checkpoints that maxport makes of the small models in tests/data/goldens, runs them in
float32 on a CPU with no setting but those of the emitted run configuration, and the logits are compared with those of
transformers. `make conformance` does it; `python conformance/report.py` writes this page.

Where embeddings are tied (Gemma), MaxText rounds the table to bfloat16 in the logits, whatever the settings, so about 1e-2
is all that can be asked for; linear attention (Qwen3-Next, Qwen3.5) is computed in chunks. The logits lie within 3.6 to 5.4.

| family | layers | largest difference | cosine | argmax | |
| --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
  rows = {}
  for line in (REPOSITORY / "build" / "conformance.jsonl").read_text().splitlines():
    result = json.loads(line)
    rows[result["family"], not result["scan"]] = result
  text = HEAD
  for (family, unscanned), r in sorted(rows.items()):
    layers = "unscanned" if unscanned else "scanned"
    if "error" in r:
      text += f"| {family} | {layers} | - | - | - | MaxText itself fails: {r['error']} |\n"
    else:
      text += f"| {family} | {layers} | {r['max_abs_diff']:.1e} | {r['cosine']:.9f} | {r['argmax_agreement']:.0%} | |\n"
  (REPOSITORY / "docs" / "conformance.md").write_text(text)


if __name__ == "__main__":
  main()
