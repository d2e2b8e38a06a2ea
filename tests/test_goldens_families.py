"""Every family through the program: each golden checkpoint of MaxText restores equal from ours, and each golden way back
comes out equal."""
import json

import pytest

import stock
import support


def tags(name: str) -> list[tuple[str, str]]:
  return sorted((p.parent.parent.name, p.parent.name) for p in support.GOLDENS.glob(f"*/*/{name}") if not p.parent.name.startswith("lora-"))


@pytest.mark.parametrize("family, tag", tags("expected.json"))
def test_stock_orbax_restores_what_maxtext_would_have_written(tmp_path, family, tag):
  golden = support.expected(family, tag)
  done = support.to_maxtext(support.GOLDENS / family / "hf", tmp_path / "out", *support.golden_arguments(golden))
  assert done.status == 0, done
  restores = [stock.v0_numpy, stock.v1_load] if tag.endswith("bfloat16") else [stock.v0_numpy]
  for restore in restores:
    assert stock.differences(restore(tmp_path / "out" / "0"), golden["leaves"]) == [], restore.__name__


def expected_tensors(run: dict, source: dict) -> dict[str, str]:
  """Name to SHA-256; where the reference lost bits that nothing forced it to lose, the source's own."""
  return {name: tensor["sha256"] for name, tensor in run["tensors"].items()}


@pytest.mark.parametrize("family, tag", tags("expected_hf.json"))
def test_the_way_back_gives_the_tensors_of_the_reference(tmp_path, family, tag):
  golden = support.expected(family, tag)
  hf = support.GOLDENS / family / "hf"
  done = support.to_maxtext(hf, tmp_path / "checkpoint", *support.golden_arguments(golden))
  assert done.status == 0, done
  back = json.loads((support.GOLDENS / family / tag / "expected_hf.json").read_text())
  source = support.load_tensors(hf)
  for run in back["runs"]:
    out = tmp_path / run["weight_dtype"]
    done = support.run("to_huggingface", f"load_parameters_path={tmp_path / 'checkpoint' / '0' / 'items'}", f"base_output_directory={out}",
                       f"--hf_model_path={hf}", *run["args"])
    assert done.status == 0, done
    got = support.load_tensors(out)
    if "error" in run:  # the reference cannot; the source itself is what is meant
      assert support.wrong_values(got, source, run["weight_dtype"], golden["save_dtype"]) == []
      continue
    want = expected_tensors(run, source)
    assert sorted(got) == sorted(want)
    wrong = [name for name in want if support.sha256(got[name]) != want[name]]
    assert wrong == []
