"""The page of `maxport inspect --html` in a real browser: it draws the treemap, the chunks and the histogram, loads nothing, and
no name becomes markup. `make test-browser` runs this; screenshots are left in build/."""
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import support

PAGES = support.REPOSITORY / "build"


def browser(page, tmp_path, *arguments) -> str:
  program = shutil.which("chromium")
  assert program, "chromium is not there: make test-browser installs it"
  done = subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1250,1600",
                         "--virtual-time-budget=5000", *arguments, page.as_uri()], capture_output=True, text=True, timeout=180)
  assert done.returncode == 0, done.stderr[-2000:]
  return done.stdout


def render(name: str, path, tmp_path, *options) -> tuple[str, dict]:
  """The document after its code has run, and what `--json` says of the same path. A picture goes to build/."""
  page = tmp_path / "page.html"
  done = support.run("inspect", path, f"--html={page}", *options)
  assert done.status == 0, done
  PAGES.mkdir(exist_ok=True)
  picture = PAGES / f"inspect-{name}.png"
  browser(page, tmp_path, f"--screenshot={picture}")
  assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and picture.stat().st_size > 20_000
  return browser(page, tmp_path, "--dump-dom"), json.loads(support.run("inspect", path, "--json").out)


def rectangles(dom: str, kind: str) -> list[tuple[float, float, float, float]]:
  tags = re.findall(r"<rect [^>]*>", dom)
  numbers = [{k: float(v) for k, v in re.findall(r'\b(x|y|width|height)="([-\d.e]+)"', tag)} for tag in tags if re.search(rf'class="{kind}\b', tag)]
  return [(n["x"], n["y"], n["width"], n["height"]) for n in numbers]


@pytest.fixture
def checkpoint(tmp_path):
  done = support.to_maxtext(support.LLAMA / "hf", tmp_path / "out", "scan_layers=false")
  assert done.status == 0, done
  return tmp_path / "out" / "0"


def test_the_page_draws_every_parameter_by_its_size(tmp_path, checkpoint):
  dom, facts = render("checkpoint", checkpoint, tmp_path)
  assert 'data-ready="yes"' in dom
  sized = sorted((t["bytes"] for t in facts["tensors"] if t["bytes"]), reverse=True)
  boxes = rectangles(dom, "tensor")
  assert len(boxes) == len(sized)
  for (x, y, w, h), size in zip(boxes, sized):
    assert w * h == pytest.approx(1150 * 520 * size / sum(sized), rel=1e-6)
    assert x >= -1e-6 and y >= -1e-6 and x + w <= 1150 + 1e-6 and y + h <= 520 + 1e-6
  assert all(max(w / h, h / w) < 12 for (_, _, w, h), size in zip(boxes, sized) if size > sum(sized) / 200), "near squares"
  bars = rectangles(dom, "bar")
  assert len(bars) == 48 and max(h for *_, h in bars) == 155
  assert len(rectangles(dom, "chunk")) >= 1
  assert "every element was read" in dom and all(t["name"] in dom for t in facts["tensors"])


def test_the_histogram_is_that_of_the_values(tmp_path):
  values = np.random.default_rng(1).normal(0, 1, 50_000).astype(np.float32)
  support.save_tensors(tmp_path / "m.safetensors", {"w": values})
  dom, _ = render("histogram", tmp_path / "m.safetensors", tmp_path)
  want, _ = np.histogram(values, 48)
  got = np.array([h for *_, h in rectangles(dom, "bar")]) / 155 * want.max()
  assert np.abs(got - want).max() < want.max() * 0.15, (got, want)
  assert "50,000 elements read" in dom


def test_a_sample_says_that_it_is_one(tmp_path, checkpoint):
  dom, _ = render("sample", checkpoint, tmp_path, "--sample=100")
  assert "a sample, windows from the front of each tensor until 100 elements" in dom


def test_hostile_names_stay_text(tmp_path):
  names = ['</script><script>document.body.dataset.broken="1"</script>', '<img src=x onerror="document.body.dataset.broken=1">', "&lt;b&gt;", "\u2028"]
  header = {name: {"dtype": "U8", "shape": [1], "data_offsets": [n, n + 1]} for n, name in enumerate(names)}
  (tmp_path / "m.safetensors").write_bytes(support.container(header, bytes(len(names))))
  dom, _ = render("hostile", tmp_path / "m.safetensors", tmp_path)
  assert 'data-ready="yes"' in dom and "data-broken" not in dom
  assert "<img" not in dom and dom.count("<script") == 2
