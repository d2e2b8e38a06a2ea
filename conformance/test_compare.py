"""`maxport compare` of what MaxText's own converter writes with what maxport writes, and with the source: equal, for every
family and form that MaxText itself converts."""
import json

import pytest

import support

def is_lazy(golden) -> bool:
  """Those that the reference makes only without lazy loading need PyTorch, which MaxText's environment here has not; what
  it wrote of them is compared leaf by leaf in tests/test_goldens_families.py."""
  return "--lazy_load_tensors=true" in json.loads(golden.read_text())["args"]


# Where the reference as released fails, its goldens came from a repaired copy; here it runs as released.
GOLDENS = sorted((p.parent.parent.name, p.parent.name) for p in support.GOLDENS.glob("*/*/expected.json")
                 if not p.parent.name.startswith(("lora-", "patched-")) and "float32" not in p.parent.name and is_lazy(p))


def compare(a, b) -> dict:
  done = support.run("compare", a, b, "--json")
  assert done.status in (0, 1), done
  return json.loads(done.out)


@pytest.mark.parametrize("family, tag", GOLDENS)
def test_maxtexts_own_checkpoint_equals_ours_and_the_source(maxtext, tmp_path, family, tag):
  golden, hf = support.expected(family, tag), support.GOLDENS / family / "hf"
  maxtext("maxtext_convert.py", golden["model_name"], hf, tmp_path / "theirs", *support.golden_arguments(golden))
  done = support.to_maxtext(hf, tmp_path / "ours", *support.golden_arguments(golden))
  assert done.status == 0, done
  for other in (tmp_path / "ours", hf):
    result = compare(tmp_path / "theirs", other)
    assert result["equal"], [t for t in result["tensors"] if t["status"] != "equal"][:3]
  layouts = {t.replace("unscan", "scan") for f, t in GOLDENS if f == family and t.startswith("unscan")}
  if tag in layouts:  # ours in the other layout, through the parameter map
    other = support.expected(family, tag.replace("scan", "unscan"))
    done = support.to_maxtext(hf, tmp_path / "unscanned", *support.golden_arguments(other))
    assert done.status == 0, done
    assert compare(tmp_path / "theirs", tmp_path / "unscanned")["equal"]
