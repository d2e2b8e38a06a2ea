"""Shared by the tests of the Python package.

Some files need software that only some environments have (Orbax, MaxText, which wants Python 3.12). They are
collected where it is installed; the header says what was left out.
"""

import importlib.util
import os
import pathlib

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")

ROOT = pathlib.Path(__file__).parents[2]

NEEDS = {"test_docs.py": "orbax", "test_jax.py": "jax", "test_maxtext.py": "maxtext", "test_notebook.py": "matplotlib",
         "test_orbax.py": "orbax", "test_types.py": "mypy"}

collect_ignore = [file for file, module in NEEDS.items() if importlib.util.find_spec(module) is None]


def pytest_report_header():
  return [f"not collected: {file}, which needs {NEEDS[file]}" for file in collect_ignore]


@pytest.fixture(scope="session")
def goldens() -> pathlib.Path:
  """tests/data/goldens: one folder a model family."""
  return ROOT / "tests" / "data" / "goldens"


@pytest.fixture(scope="session")
def orbax_samples() -> pathlib.Path:
  """tests/data/orbax_samples: whole checkpoints that stock tools wrote."""
  return ROOT / "tests" / "data" / "orbax_samples"
