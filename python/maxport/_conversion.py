"""Converting and verifying."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from maxport import _program
from maxport._checkpoint import open as open_checkpoint
from maxport._planning import words

Path = str | os.PathLike[str]


def convert(source: Path, output: Path, arguments: Sequence[str] = (), *, progress: _program.Progress | None = None,
            **settings: Any) -> dict[str, Any]:
  """Converts a Hugging Face model to a MaxText checkpoint, or a MaxText checkpoint to a Hugging Face model.

  Which of the two follows from `source`. An interrupted conversion is continued by the same call.

  Args:
    source: the model's folder, or the checkpoint, step or item.
    output: the directory of steps to write into, or the model folder to make.
    arguments: words as on the command lines of `maxport to_maxtext` and `maxport to_huggingface`, e.g. "--overwrite".
    progress: called with the share that is done, 0.0 to 1.0.
    **settings: the same as keywords: `scan_layers=True`, `save_dtype="bfloat16"`, `max_memory="200MB"`.

  Returns:
    The report, as the command's `--json` prints it: where the result is, its size, the seconds and the memory it took.
  """
  source, output = os.fspath(source), os.fspath(output)
  if open_checkpoint(source).format == "orbax":
    command = ["to_huggingface", f"load_parameters_path={source}"]
  else:
    command = ["to_maxtext", f"hf_model_path={source}"]
  return _program.run([*command, f"base_output_directory={output}", *arguments, *words(settings)], progress)


def verify(checkpoint: Path, source: Path | None = None, **settings: Any) -> dict[str, Any]:
  """Reads every chunk of a MaxText checkpoint and says whether it is whole and unchanged.

  Args:
    checkpoint: a directory of steps, a step or an item.
    source: the Hugging Face model that it was made from; with it every element is derived again and compared.
    **settings: MaxText settings that the plan depends on and the checkpoint does not tell.

  Returns:
    The report: "good", and under "damages" what is wrong with which leaf.
  """
  origin = [] if source is None else [f"--source={os.fspath(source)}"]
  return _program.run(["verify", os.fspath(checkpoint), *origin, *words(settings)])


def inspect(path: Path) -> dict[str, Any]:
  """What is at a path, how it is stored, and which model it is of, as `maxport inspect --json` prints it.

  Reads headers and metadata only. For the arrays themselves see `maxport.open`.

  Args:
    path: a Hugging Face folder, a safetensors file, or an Orbax directory of steps, step or item.
  """
  return _program.run(["inspect", os.fspath(path)])
