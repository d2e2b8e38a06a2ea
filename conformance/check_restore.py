"""Restores a MaxText checkpoint with stock Orbax in four ways and compares each leaf with an expected.json.

usage: check_restore.py STEP EXPECTED.json      (STEP is BASE_OUTPUT_DIRECTORY/0)

v0 as NumPy arrays, v0 as jax.Array over four simulated devices, v1 `load` and v1 `load_checkpointables`: a line each. The
exit status is 1 if any differs.
"""
import json
import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import stock


def main() -> int:
  step = pathlib.Path(sys.argv[1]).absolute()
  expected = json.loads(pathlib.Path(sys.argv[2]).read_text())["leaves"]
  failed = False
  for how, restore in stock.RESTORES.items():
    try:
      problems = stock.differences(restore(step), expected)
    except Exception as error:  # what stock Orbax says is the result
      problems = [f"{type(error).__name__}: {str(error)[:500]}"]
    print(f"{how}: " + ("all leaves equal" if not problems else f"{len(problems)} problems"))
    for problem in problems[:10]:
      print(f"  {problem}")
    failed |= bool(problems)
  return int(failed)


if __name__ == "__main__":
  sys.exit(main())
