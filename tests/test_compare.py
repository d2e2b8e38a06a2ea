"""`maxport compare`: every pair of forms of every golden is equal; what differs is measured as NumPy measures it."""
import json
import re
import shutil

import ml_dtypes
import numpy as np
import pytest

import support

SAMPLES = support.DATA / "orbax_samples"
EQUAL, DIFFERENT = 0, 1


def compare(a, b, *arguments) -> support.Run:
  return support.run("compare", a, b, *arguments)


def report(a, b, *arguments) -> tuple[int, dict]:
  done = compare(a, b, "--json", *arguments)
  assert done.status in (EQUAL, DIFFERENT), done
  return done.status, json.loads(done.out)


def statuses(result: dict) -> set[str]:
  return {tensor["status"] for tensor in result["tensors"]}


# --- goldens ---------------------------------------------------------------------------------------------------------

GOLDENS = sorted((p.parent.parent.name, p.parent.name) for p in support.GOLDENS.glob("*/*/expected.json") if not p.parent.name.startswith("lora-"))


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
  """Converts a golden once; more arguments make another checkpoint."""
  made = {}

  def convert(family: str, tag: str, *more):
    key = (family, tag, more)
    if key not in made:
      made[key] = tmp_path_factory.mktemp("checkpoint") / "out"
      done = support.to_maxtext(support.GOLDENS / family / "hf", made[key], *support.golden_arguments(support.expected(family, tag)), *more)
      assert done.status == 0, done
    return made[key] / "0"

  return convert


@pytest.mark.parametrize("family, tag", GOLDENS)
def test_hugging_face_equals_maxtext_on_every_golden(converted, family, tag):
  hf, checkpoint = support.GOLDENS / family / "hf", converted(family, tag)
  status, result = report(hf, checkpoint)
  leaves = {name for name, leaf in support.expected(family, tag)["leaves"].items() if "shape" in leaf}
  assert {t["name"] for t in result["tensors"]} == {re.sub(r"^params\.(params|[A-Za-z]+)\.", "", leaf) for leaf in leaves if leaf.startswith("params.")}
  assert all(t["elements"] == np.prod(t["a"]["shape"]) and t["differing"] == 0 and t["cosine"] == 1 for t in result["tensors"])
  if "bfloat16" in tag:
    assert status == EQUAL and result["equal"] and statuses(result) == {"equal"}
  else:  # the files hold bfloat16
    assert status == DIFFERENT and not result["equal"] and statuses(result) <= {"other dtype", "equal"}
    assert compare(hf, checkpoint, "--ignore_dtypes").status == EQUAL
  assert compare(checkpoint, hf, "--ignore_dtypes").status == EQUAL


PAIRS = [(family, tag, tag.replace("unscan", "scan")) for family, tag in GOLDENS if "unscan" in tag]
PAIRS = [(f, u, s if (f, s) in GOLDENS else "patched-" + s) for f, u, s in PAIRS if (f, s) in GOLDENS or (f, "patched-" + s) in GOLDENS]


@pytest.mark.parametrize("family, unscanned, scanned", PAIRS)
def test_scanned_equals_unscanned_on_every_golden(converted, family, unscanned, scanned):
  status, result = report(converted(family, scanned), converted(family, unscanned))
  assert status == EQUAL and statuses(result) == {"equal"}
  stored = sum(int(np.prod(leaf["shape"])) for name, leaf in support.expected(family, scanned)["leaves"].items() if "shape" in leaf and name.startswith("params."))
  assert result["summary"]["elements"] == stored, "every stored element, padding too"
  assert compare(converted(family, unscanned), converted(family, scanned)).status == EQUAL


FORMS = [("checkpoint_storage_use_ocdbt=false",), ("checkpoint_storage_use_zarr3=false",),
         ("checkpoint_storage_use_ocdbt=false", "checkpoint_storage_use_zarr3=false"), ("--simulated_cpu_devices_count=1",)]


@pytest.mark.parametrize("family", sorted({family for family, _ in GOLDENS}))
def test_every_storage_form_of_a_family_is_equal(converted, family):
  tag = [t for f, t in GOLDENS if f == family and t.endswith("bfloat16")][0]
  for form in FORMS:
    status, result = report(converted(family, tag), converted(family, tag, *form))
    assert status == EQUAL and statuses(result) == {"equal"}, form


SAME_WEIGHTS = sorted(p.name for p in SAMPLES.glob("mt_*")) + ["linen_single_params", "nnx_sft", "nnx_rl_base"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
  """Our conversions of the model that MaxText's own samples hold."""
  folder = tmp_path_factory.mktemp("ours")
  made = {}
  for dtype in ("bfloat16", "float32"):
    for scan in ("true", "false"):
      out = folder / f"{dtype}-{scan}"
      done = support.to_maxtext(SAMPLES / "hf_tiny_llama", out, f"scan_layers={scan}", f"--save_dtype={dtype}")
      assert done.status == 0, done
      made[dtype, scan] = out
  return made


@pytest.mark.parametrize("sample", SAME_WEIGHTS)
def test_maxtexts_own_checkpoints_equal_ours_and_the_source(ours, sample):
  dtype = "float32" if sample.endswith("float32") else "bfloat16"
  for scan in ("true", "false"):
    status, result = report(SAMPLES / sample, ours[dtype, scan])
    assert status == EQUAL and statuses(result) == {"equal"}, (sample, scan)
  assert compare(SAMPLES / "hf_tiny_llama", SAMPLES / sample, *(["--ignore_dtypes"] if dtype == "float32" else [])).status == EQUAL


# --- what differs ----------------------------------------------------------------------------------------------------

@pytest.fixture
def pair(tmp_path):
  """Two tiny models in float32, of which the second differs in one tensor."""
  rng = np.random.default_rng(3)
  a, b = support.Model(tmp_path / "a", torch_dtype="float32"), support.Model(tmp_path / "b", torch_dtype="float32")
  for model in (a, b):
    model.tensors = {name: tensor.astype(np.float32) for name, tensor in model.tensors.items()}
  name = "model.layers.1.mlp.up_proj.weight"
  changed = b.tensors[name].copy()
  places = rng.choice(changed.size, 50, replace=False)
  changed.reshape(-1)[places] += rng.normal(0, 1e-3, 50).astype(np.float32)
  b.tensors[name] = changed
  return a, b, name


def ulp(a: np.ndarray, b: np.ndarray) -> int:
  def ordered(x):
    bits = x.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF) - 1, bits)
  return int(np.abs(ordered(a) - ordered(b)).max())


def check_measures(entry: dict, a: np.ndarray, b: np.ndarray) -> None:
  x, y = a.astype(np.float64), b.astype(np.float64)
  assert entry["differing"] == int((x != y).sum())
  assert entry["max_difference"] == np.abs(x - y).max()
  assert entry["mean_difference"] == pytest.approx(np.abs(x - y).mean(), rel=1e-12)
  assert entry["cosine"] == pytest.approx((x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-12)
  assert entry["max_ulp"] == ulp(a, b)


def test_the_measures_are_those_of_numpy(pair):
  a, b, name = pair
  status, result = report(a.write(), b.write())
  assert status == DIFFERENT and not result["equal"]
  entry, = [t for t in result["tensors"] if t["status"] != "equal"]
  assert entry["name"] == name and entry["status"] == "different"
  check_measures(entry, a.tensors[name], b.tensors[name])
  first = entry["first_difference"]
  assert tuple(first["index"]) == tuple(np.argwhere(a.tensors[name] != b.tensors[name])[0])
  for side, model in (("a", a), ("b", b)):
    value = model.tensors[name][tuple(first["index"])]
    assert first[side]["value"] == value and int(first[side]["bits"], 16) == value.view(np.uint32)


@pytest.mark.parametrize("scan_a, scan_b", [(None, "true"), ("true", "false"), ("false", None), ("false", "false")])
def test_the_same_is_found_through_the_parameter_map(pair, tmp_path, scan_a, scan_b):
  a, b, name = pair
  sides = []
  for model, scan in ((a, scan_a), (b, scan_b)):
    side = model.write()
    if scan:
      side = tmp_path / f"{model.folder.name}-checkpoint"
      done = support.to_maxtext(model.folder, side, f"scan_layers={scan}", "--save_dtype=float32")
      assert done.status == 0, done
    sides.append(side)
  status, result = report(*sides)
  assert status == DIFFERENT
  entry, = [t for t in result["tensors"] if t["status"] != "equal"]
  assert entry["differing"] == 50 and entry["max_ulp"] == ulp(a.tensors[name], b.tensors[name])
  assert entry["max_difference"] == np.abs(a.tensors[name].astype(np.float64) - b.tensors[name].astype(np.float64)).max()
  first = entry["first_difference"]
  if "hf_tensor" in first:
    assert first["hf_tensor"] == name
    assert first["a"]["value"] == a.tensors[name][tuple(first["hf_index"])] and first["b"]["value"] == b.tensors[name][tuple(first["hf_index"])]


def test_the_tolerance_decides(pair):
  a, b, name = pair
  most = float(np.abs(a.tensors[name].astype(np.float64) - b.tensors[name].astype(np.float64)).max())
  a.write(), b.write()
  assert compare(a.folder, b.folder, f"--tolerance={most!r}").status == EQUAL
  assert compare(a.folder, b.folder, "--tolerance", repr(float(np.nextafter(most, 0)))).status == DIFFERENT
  for wrong in ("-1", "much", "nan", "inf", ""):
    assert compare(a.folder, b.folder, f"--tolerance={wrong}").status == support.INVALID_ARGUMENT, wrong


def test_nan_of_equal_bits_are_equal_and_that_is_said(pair):
  a, b, name = pair
  for model in (a, b):
    model.tensors = {n: t.copy() for n, t in a.tensors.items()}
    model.tensors[name][3, 4] = np.nan
    model.write()
  done = compare(a.folder, b.folder)
  assert done.status == EQUAL and "1 NaN have equal bits on both sides and count as equal" in done.out, done
  b.tensors[name].view(np.uint32)[3, 4] += 1
  b.write()
  status, result = report(a.folder, b.folder, "--tolerance=1e30")
  entry, = [t for t in result["tensors"] if t["status"] != "equal"]
  assert status == DIFFERENT and entry["non_finite"] == 1 and entry["first_difference"]["index"] == [3, 4]
  assert entry["first_difference"]["a"]["value"] == "NaN"


def test_one_sided_tensors_other_shapes_and_other_types_are_listed(pair):
  a, b, _ = pair
  del b.tensors["model.norm.weight"]
  b.tensors["extra"] = np.zeros(3, np.float32)
  b.tensors["lm_head.weight"] = b.tensors["lm_head.weight"][:-1]
  b.tensors["model.layers.0.input_layernorm.weight"] = b.tensors["model.layers.0.input_layernorm.weight"].astype(ml_dtypes.bfloat16)
  status, result = report(a.write(), b.write())
  found = {t["name"]: t for t in result["tensors"]}
  assert status == DIFFERENT
  assert found["model.norm.weight"]["status"] == "only in A" and found["model.norm.weight"]["b"] is None
  assert found["extra"]["status"] == "only in B" and found["extra"]["b"] == {"dtype": "float32", "shape": [3]}
  assert found["lm_head.weight"]["status"] == "other shape"
  assert found["model.layers.0.input_layernorm.weight"]["status"] == "other dtype"
  assert found["model.layers.0.input_layernorm.weight"]["max_ulp"] is None
  text = compare(a.folder, b.folder, "--quiet").out
  assert re.search(r"^only in A +model\.norm\.weight  float32\[64\]$", text, re.M), text
  assert "DIFFERENT:" in text.splitlines()[-1] and not re.search(r"^equal ", text, re.M)


def test_a_leaf_that_a_checkpoint_lacks_is_listed(ours, tmp_path):
  """Storage in folders, so that a leaf can be taken away."""
  for scan in ("true", "false"):
    out = tmp_path / scan
    done = support.to_maxtext(SAMPLES / "hf_tiny_llama", out, f"scan_layers={scan}", "checkpoint_storage_use_ocdbt=false")
    assert done.status == 0, done
    layer = "layers" if scan == "true" else "layers_1"
    gone = f"params.params.decoder.{layer}.mlp.wo.kernel"
    shutil.rmtree(out / "0" / "items" / gone)
    metadata = out / "0" / "items" / "_METADATA"
    tree = json.loads(metadata.read_text())
    tree["tree_metadata"] = {k: v for k, v in tree["tree_metadata"].items() if "wo" not in k or layer not in k}
    metadata.write_text(json.dumps(tree))
    status, result = report(SAMPLES / "hf_tiny_llama", out)
    lacking = {t["name"] for t in result["tensors"] if t["status"] == "only in A"}
    assert status == DIFFERENT and lacking == {f"decoder.{layer}.mlp.wo.kernel"}
    for other in ("true", "false"):
      status, result = report(ours["bfloat16", other], out)
      lacking = {t["name"] for t in result["tensors"] if t["status"] == "only in A"}
      assert status == DIFFERENT and all(t["status"] == "equal" for t in result["tensors"] if t["name"] not in lacking)
      if other == scan:
        assert lacking == {f"decoder.{layer}.mlp.wo.kernel"}
      else:
        assert lacking == {f"model.layers.{n}.mlp.down_proj.weight" for n in ([0, 1] if scan == "true" else [1])}


def test_memory_does_not_grow_with_the_tensors(tmp_path):
  peaks = {}
  for rows in (1 << 10, 1 << 17):
    sides = [tmp_path / f"{side}{rows}.safetensors" for side in "ab"]
    for side in sides:
      support.save_tensors(side, {"w": np.zeros((rows, 1024), np.float16)})
    done = compare(*sides, "--threads=2")
    assert done.status == EQUAL, done
    peaks[rows] = done.peak_bytes
  assert peaks[1 << 17] < peaks[1 << 10] + (100 << 20), peaks  # of 2 x 268 MB


def test_what_cannot_be_read_is_another_status_than_different(tmp_path, pair):
  a, _, _ = pair
  a.write()
  assert compare(a.folder, tmp_path / "nowhere").status == support.NOT_FOUND
  assert support.run("compare", a.folder).status == support.INVALID_ARGUMENT
  assert compare(a.folder, a.folder, "--nonsense").status == support.INVALID_ARGUMENT
  (tmp_path / "bad.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
  assert compare(tmp_path / "bad.safetensors", a.folder).status in (support.CORRUPT_DATA, support.INVALID_ARGUMENT, DIFFERENT)
  (tmp_path / "short.safetensors").write_bytes(b"\xff\0\0\0\0\0\0\0{}")
  assert compare(tmp_path / "short.safetensors", a.folder).status == support.CORRUPT_DATA


def test_standard_output_holds_one_document_and_talk_goes_elsewhere(pair):
  a, b, _ = pair
  done = compare(a.write(), b.write(), "--json")
  json.loads(done.out)
  assert "compared: tensors of one name" in done.err
