"""The command line program: `maxport` and `python -m maxport` are the same."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence


def program() -> pathlib.Path:
  """The compiled program that the package carries."""
  return pathlib.Path(__file__).parent / "bin" / "maxport"


def main(arguments: Sequence[str] | None = None) -> None:
  """Becomes the program; does not return."""
  words = sys.argv[1:] if arguments is None else list(arguments)
  sys.stdout.flush()
  sys.stderr.flush()
  os.execv(program(), ["maxport", *words])


if __name__ == "__main__":
  main()
