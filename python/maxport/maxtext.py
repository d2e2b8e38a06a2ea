"""Runs MaxText's own tools with lazy tensors that stock Orbax can save.

usage: python -m maxport.maxtext to_maxtext ARGUMENTS...

The arguments are those of `python -m maxtext.checkpoint_conversion.to_maxtext`, whose code runs unmodified; only the
Orbax handler for its lazy tensors is added in this process (maxport.orbax.patch_maxtext). So
`--lazy_load_tensors=true --simulated_cpu_devices_count=1` works. `to_huggingface` runs MaxText's way back.
"""

from __future__ import annotations

import runpy
import sys

TOOLS = ("to_maxtext", "to_huggingface")


def main(arguments: list[str] | None = None) -> int:
  """Runs the tool named by the first argument as MaxText's own `python -m` would. Returns an exit status."""
  arguments = sys.argv[1:] if arguments is None else arguments
  if arguments and arguments[0] in ("-h", "--help"):
    print(__doc__.strip())
    return 0
  if not arguments or arguments[0] not in TOOLS:
    print(f"maxport.maxtext: expected one of {', '.join(TOOLS)}, found {arguments[:1] or 'nothing'}\n\n"
          f"{__doc__.strip()}", file=sys.stderr)
    return 2

  from maxport.orbax import patch_maxtext

  patch_maxtext()
  sys.argv = [arguments[0], *arguments[1:]]
  runpy.run_module(f"maxtext.checkpoint_conversion.{arguments[0]}", run_name="__main__", alter_sys=True)
  return 0


if __name__ == "__main__":
  sys.exit(main())
