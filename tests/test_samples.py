"""The judge itself is judged: stock Orbax restores its own samples to their expected leaves, so a difference found in
our output is ours."""
import json

import pytest

import stock
import support

SAMPLES = sorted(p.name for p in (support.DATA / "orbax_samples").glob("mt_*"))


@pytest.mark.parametrize("name", SAMPLES)
def test_stock_orbax_restores_what_maxtext_wrote(name):
  folder = support.DATA / "orbax_samples" / name
  expected = json.loads((folder / "expected.json").read_text())["leaves"]
  for how, restore in stock.RESTORES.items():
    assert stock.differences(restore(folder / "0"), expected) == [], how


def test_a_difference_is_seen():
  folder = support.DATA / "orbax_samples" / SAMPLES[0]
  expected = json.loads((folder / "expected.json").read_text())["leaves"]
  name = "params.params.decoder.decoder_norm.scale"
  for change in {"sha256": "0" * 64}, {"dtype": "float64"}, {"shape": [1]}:
    assert stock.differences(stock.v0_numpy(folder / "0"), {**expected, name: {**expected[name], **change}}), change
  assert stock.differences(stock.v0_numpy(folder / "0"), {**expected, "more": expected[name]}) == ["more is missing"]
  del expected[name]
  assert stock.differences(stock.v0_numpy(folder / "0"), expected) == [f"{name} is not expected"]
