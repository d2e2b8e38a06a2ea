"""A checkpoint that stock Orbax does not restore is not passed by `maxport verify`, also without digests to compare with."""
import json
import shutil

import pytest

import stock
import support


def changed_tree(change):
  def apply(step):
    path = step / "items" / "_METADATA"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))

  return apply


def first(content: dict) -> dict:
  return next(iter(content["tree_metadata"].values()))


SAMPLES = sorted(p.parent for p in (support.DATA / "orbax_samples").glob("*/expected.json"))
DAMAGES = {
    "no tree file": lambda step: (step / "items" / "_METADATA").unlink(),
    "no manifest": lambda step: (step / "items" / "manifest.ocdbt").unlink(),
    "no data": lambda step: shutil.rmtree(step / "items" / "d"),
    "empty tree file": lambda step: (step / "items" / "_METADATA").write_text("{}"),
    "no skip_deserialize": changed_tree(lambda c: first(c)["value_metadata"].pop("skip_deserialize")),
    "no value_type": changed_tree(lambda c: first(c)["value_metadata"].pop("value_type")),
    "no value_metadata": changed_tree(lambda c: first(c).pop("value_metadata")),
    "no key_metadata": changed_tree(lambda c: first(c).pop("key_metadata")),
    "no key_type": changed_tree(lambda c: first(c)["key_metadata"][0].pop("key_type")),
    "unknown key_type": changed_tree(lambda c: first(c)["key_metadata"][0].update(key_type=9)),
    "unknown value_type": changed_tree(lambda c: first(c)["value_metadata"].update(value_type="maxport")),
    "another Zarr version": changed_tree(lambda c: c.update(use_zarr3=False)),
    "no database": changed_tree(lambda c: c.update(use_ocdbt=False)),
    "a leaf without array": changed_tree(lambda c: c["tree_metadata"].update(
        {"('params', 'x')": {"key_metadata": [{"key": "params", "key_type": 2}, {"key": "x", "key_type": 2}],
                             "value_metadata": first(c)["value_metadata"]}})),
}


@pytest.fixture(scope="module")
def step(tmp_path_factory):
  out = tmp_path_factory.mktemp("metadata")
  done = support.to_maxtext(support.LLAMA / "hf", out, "scan_layers=true")
  assert done.status == 0, done
  (out / "0" / "maxport.json").unlink()
  return out / "0"


def test_an_undamaged_one_passes(step):
  done = support.run("verify", step)
  assert done.status == 0, done
  stock.v0_numpy(step)


@pytest.mark.parametrize("name", DAMAGES)
def test_what_stock_refuses_does_not_pass(step, tmp_path, name):
  copy = tmp_path / "0"
  shutil.copytree(step, copy)
  DAMAGES[name](copy)
  with pytest.raises(Exception):
    stock.v0_numpy(copy)
  done = support.run("verify", copy)
  assert done.status == support.CORRUPT_DATA or done.status == support.NOT_FOUND, done




@pytest.mark.parametrize("sample", SAMPLES, ids=lambda p: p.name)
def test_what_stock_tools_wrote_passes(sample):
  item = json.loads((sample / "expected.json").read_text()).get("item_path")
  if item is None:
    assert (sample / "config.json").exists(), "only the source model is no checkpoint"
    return
  done = support.run("verify", sample / item)
  assert done.status == 0, done
