"""MaxText reads configurations. Standard input: a JSON list of command lines, each the words after the program's name.
Standard output: a JSON list, for each line its settings, or {"error": text}.

The words hardware=cpu, skip_jax_distributed_system=true and run_name=r are added.
"""
import contextlib
import json
import logging
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
from maxtext.configs import pyconfig

ALWAYS = ["hardware=cpu", "skip_jax_distributed_system=true", "run_name=r", "log_config=false"]


def load(words):
  try:
    with contextlib.redirect_stdout(sys.stderr):
      config = pyconfig.initialize(["load", *words, *ALWAYS])
  except (Exception, SystemExit) as problem:  # MaxText leaves by SystemExit after printing what was wrong
    return {"error": f"{type(problem).__name__}: {problem} {problem.__context__}"}
  return json.loads(json.dumps(config.get_keys(), default=lambda value: getattr(value, "value", str(value))))


def main():
  logging.disable(logging.WARNING)
  json.dump([load(words) for words in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
  main()
