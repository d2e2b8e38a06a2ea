"""Compares a restored tree with the leaves of an expected.json."""

import hashlib
from typing import Any

import numpy as np


def flatten(tree: Any) -> dict[str, Any]:
  """Dotted path -> leaf, for nested mappings."""
  leaves = {}

  def walk(node, path):
    if hasattr(node, "items"):
      for key, value in node.items():
        walk(value, [*path, str(key)])
    elif node is not None:
      leaves[".".join(path)] = node

  walk(tree, [])
  return leaves


def describe(array: Any) -> dict[str, Any]:
  """Shape, dtype and digest of an array, as expected.json has them."""
  array = np.asarray(array)
  digest = hashlib.sha256(array.tobytes(order="C")).hexdigest()
  return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": digest}


def assert_leaves_equal(tree: Any, expected: dict[str, Any]) -> None:
  """Each leaf of `tree` has the shape, the dtype and the bytes of `expected`, and none is missing or left over."""
  found = {path: describe(leaf) for path, leaf in flatten(tree).items() if path != "step"}
  wanted = {path: leaf for path, leaf in expected.items() if "sha256" in leaf and path != "step"}
  assert found == wanted
