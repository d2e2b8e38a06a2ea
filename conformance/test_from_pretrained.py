"""What `maxport to_huggingface` makes opens in transformers with no key missing, unexpected or mismatched."""
import json

import pytest

import support

# MaxText converts only the text of these; the decoder is a model of its own then.
TEXT_ONLY = {"gemma4-e2b"}

FAMILIES = sorted(p.parent.name for p in support.GOLDENS.glob("*/hf"))


def tag(family: str) -> str:
  """The fullest form that there is: with pictures before text only."""
  tags = sorted(p.parent.name for p in (support.GOLDENS / family).glob("*/expected.json") if "bfloat16" in p.parent.name and "lora" not in p.parent.name)
  return next((t for t in tags if t.endswith("-mm")), tags[0])


@pytest.fixture(scope="session")
def loaded(transformers, tmp_path_factory) -> dict[str, dict]:
  folder, out = tmp_path_factory.mktemp("back"), {}
  for family in FAMILIES:
    golden = support.expected(family, tag(family))
    done = support.to_maxtext(support.GOLDENS / family / "hf", folder / f"{family}-checkpoint", *support.golden_arguments(golden))
    assert done.status == 0, done
    done = support.run("to_huggingface", f"load_parameters_path={folder / f'{family}-checkpoint' / '0'}", f"base_output_directory={folder / family}",
                       "weight_dtype=bfloat16", *(["--as_text_model"] if family in TEXT_ONLY else []))
    assert done.status == 0, done
  for line in transformers("load_pretrained.py", *(folder / family for family in FAMILIES)).stdout.splitlines():
    if line.startswith("{"):
      result = json.loads(line)
      out[result["folder"].rsplit("/", 1)[-1]] = result
  return out


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_finds_every_key(loaded, family):
  result = loaded[family]
  assert "error" not in result, result
  assert result["missing_keys"] == [] and result["unexpected_keys"] == [] and result["mismatched_keys"] == [], result
