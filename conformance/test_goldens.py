"""The goldens in tests/data are what MaxText's own converter makes: a selection is made again and compared."""
import pytest

import stock
import support

SELECTION = [("llama3.1-8b", "scan-bfloat16"), ("llama3.1-8b", "unscan-float32"), ("gemma2-2b", "scan-float32"),
             ("qwen3-30b-a3b", "scan-bfloat16"), ("mixtral-8x7b", "unscan-bfloat16"), ("gpt-oss-20b", "scan-bfloat16")]


@pytest.mark.parametrize("family, tag", SELECTION)
def test_the_reference_makes_the_golden_again(maxtext, tmp_path, family, tag):
  golden = support.expected(family, tag)
  maxtext("maxtext_convert.py", golden["model_name"], support.GOLDENS / family / "hf", tmp_path / "out", *support.golden_arguments(golden))
  restored = stock.v0_numpy(tmp_path / "out" / "0")
  assert stock.differences(restored, golden["leaves"]) == []


def test_the_reference_carries_a_golden_back_to_the_tensors_recorded(maxtext, tmp_path):
  golden = support.expected("llama3.1-8b", "scan-bfloat16")
  source = support.LLAMA / "hf"
  maxtext("maxtext_convert.py", "llama3.1-8b", source, tmp_path / "out", *support.golden_arguments(golden))
  settings = [a for a in golden["args"] if not a.startswith("--")]
  for dtype in "float32", "bfloat16":
    back = tmp_path / f"back-{dtype}"
    maxtext("maxtext_to_huggingface.py", "llama3.1-8b", tmp_path / "out" / "0" / "items", source, back, f"weight_dtype={dtype}", *settings)
    tensors = support.load_tensors(back)
    want = {name: t["sha256"] for name, t in support.expected_back("llama3.1-8b", "scan-bfloat16", dtype).items()}
    assert {name: stock.digest(t) for name, t in tensors.items()} == want
