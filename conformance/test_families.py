"""MaxText itself runs what maxport wrote, family by family, scanned and not, told only what the emitted run configuration
says; its logits are as close to transformers' as MaxText's own checkpoints come. Results go to
build/conformance.jsonl, from which conformance/report.py makes docs/conformance.md.

The limits are twice what MaxText's own checkpoints showed. Where embeddings are tied, MaxText rounds the table to
bfloat16 in the logits, whatever the settings: there 1e-2 and more is all that this check can ask for.
"""
import json
import pathlib

import pytest

import support

LINEAR_ATTENTION = {"qwen3-next-80b-a3b": 1.2e-4, "qwen3.5-35b-a3b": 5e-4}
TIED = {"gemma2-2b": 1.5e-2, "gemma3-4b": 2e-2, "gemma4-26b": 1.6e-2, "gemma4-e2b": 1.5e-2}
EXACT = 1.2e-5
UNSCANNED_ONLY = {"gemma4-e2b", "qwen3-omni-30b-a3b", "qwen3-vl-2b"}
# MaxText cannot run these, whoever wrote them.
FAILS_IN_MAXTEXT = {"deepseek3-671b": "Array has been deleted", "deepseek3.2-671b": "Array has been deleted"}

FAMILIES = sorted(p.parent.name for p in support.GOLDENS.glob("*/logits.safetensors"))
CASES = [(family, scan) for family in FAMILIES for scan in (True, False) if not (scan and family in UNSCANNED_ONLY)]


def record(family: str, scan: bool, result: dict) -> None:
  file = support.REPOSITORY / "build" / "conformance.jsonl"
  file.parent.mkdir(exist_ok=True)
  with file.open("a") as out:
    out.write(json.dumps({"family": family, "scan": scan, **result}) + "\n")


def settings(family: str, scan: bool) -> list[str]:
  """The golden's own arguments, in float32, text only."""
  tags = [f"{'scan' if scan else 'unscan'}-float32", f"patched-{'scan' if scan else 'unscan'}-float32"]
  tag = next(t for t in tags if (support.GOLDENS / family / t).exists())
  return support.golden_arguments(support.expected(family, tag))


@pytest.mark.parametrize("family, scan", CASES)
def test_maxtext_runs_the_family_as_transformers_does(maxtext, tmp_path, family, scan):
  out = tmp_path / "out"
  done = support.to_maxtext(support.GOLDENS / family / "hf", out, *settings(family, scan))
  assert done.status == 0, done
  run = maxtext("maxtext_logits.py", out / "0" / "items", support.GOLDENS / family / "logits.safetensors", out / "maxtext.yml", check=False)
  if family in FAILS_IN_MAXTEXT:
    record(family, scan, {"error": FAILS_IN_MAXTEXT[family]})
    assert run.returncode != 0 and FAILS_IN_MAXTEXT[family] in run.stderr, run.stderr[-2000:]
    return
  assert run.returncode == 0, run.stderr[-4000:]
  result = json.loads(run.stdout.splitlines()[-1])
  record(family, scan, result)
  limit = TIED.get(family) or LINEAR_ATTENTION.get(family) or EXACT
  assert result["argmax_agreement"] == 1 and result["max_abs_diff"] <= limit, result
