"""Types and stubs: the package's own code, and what its users' checkers see."""

import os
import pathlib
import subprocess
import sys

import maxport

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = pathlib.Path(maxport.__file__).parent


def mypy(folder: pathlib.Path, *arguments, path: str = "") -> subprocess.CompletedProcess:
  """Runs in `folder`; `path` is where it looks for packages besides those that are installed."""
  command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *arguments]
  return subprocess.run(command, cwd=folder, env={**os.environ, "MYPYPATH": path}, capture_output=True, text=True, check=False)


def test_the_package_is_typed_consistently(tmp_path):
  run = mypy(tmp_path, "-p", "maxport", path=str(ROOT / "python"))
  assert run.returncode == 0, run.stdout + run.stderr


USE = """
from typing import Any, assert_type

import numpy as np

import maxport

assert_type(maxport.logits("a", ids=[1]), np.ndarray)
assert_type(maxport.inspect("a"), dict[str, Any])
assert_type(maxport.convert("a", "b", scan_layers=True), dict[str, Any])
assert_type(maxport.compare("a", "b"), maxport.Comparison)
assert_type(maxport.open("a")["b"], maxport.LazyArray)
assert_type(maxport.plan("a").family, str)
"""


def test_users_see_the_types_of_what_is_returned(tmp_path):
  installed = FOLDER.parent.name in ("site-packages", "dist-packages")
  path = "" if installed else str(FOLDER.parent)
  (tmp_path / "use.py").write_text(USE)
  run = mypy(tmp_path, "use.py", path=path)
  assert run.returncode == 0, run.stdout + run.stderr
  (tmp_path / "misuse.py").write_text("import maxport\nmaxport.open(3)\nmaxport.verify()\n")
  wrong = mypy(tmp_path, "misuse.py", path=path).stdout
  assert "misuse.py:2: error" in wrong and "misuse.py:3: error" in wrong
