"""Types and stubs: the package's own code, and what its users' checkers see."""

import pathlib
import subprocess
import sys

import maxport

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = pathlib.Path(maxport.__file__).parent


def mypy(*arguments) -> subprocess.CompletedProcess:
  command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *arguments]
  return subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False)


def test_the_package_is_typed_consistently():
  run = mypy("-p", "maxport")
  assert run.returncode == 0, run.stdout


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
  (tmp_path / "use.py").write_text(USE)
  run = mypy(tmp_path / "use.py")
  assert run.returncode == 0, run.stdout
  (tmp_path / "misuse.py").write_text("import maxport\nmaxport.open(3)\nmaxport.verify()\n")
  wrong = mypy(tmp_path / "misuse.py").stdout
  assert "misuse.py:2: error" in wrong and "misuse.py:3: error" in wrong
