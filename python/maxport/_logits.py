"""Forward passes: what a model says to token ids."""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from maxport import _program, errors
from maxport._checkpoint import open as open_checkpoint
from maxport._planning import words

Path = str | os.PathLike[str]
#: One sequence of token ids, or several of any lengths.
Ids = Sequence[int] | Sequence[Sequence[int]] | np.ndarray


@overload
def logits(a: Path, b: None = None, *, ids: Ids | None = None, prompt: str | None = None, golden_logits: None = None,
           like_maxtext: bool = False, tokenizer: Path | None = None, **settings: Any) -> np.ndarray: ...


@overload
def logits(a: Path, b: Path | None = None, *, ids: Ids | None = None, prompt: str | None = None,
           golden_logits: Path | None = None, like_maxtext: bool = False, tokenizer: Path | None = None,
           **settings: Any) -> np.ndarray | dict[str, Any]: ...


def logits(a: Path, b: Path | None = None, *, ids: Ids | None = None, prompt: str | None = None,
           golden_logits: Path | None = None, like_maxtext: bool = False, tokenizer: Path | None = None,
           **settings: Any) -> np.ndarray | dict[str, Any]:
  """Runs token ids through one or two models in float32.

  A Hugging Face folder is run as transformers defines the model, a MaxText checkpoint as MaxText defines it; weights are
  read layer by layer. What goes in is one of `ids`, `prompt` and `golden_logits`.

  Args:
    a: a model: a Hugging Face folder, or a checkpoint's directory of steps, step or item.
    b: another model to compare the first with.
    ids: token ids of one sequence, or of several.
    prompt: text; its ids come from a tokenizer.json.
    golden_logits: a .safetensors or .jsonl file with ids and the logits to compare with.
    like_maxtext: round tied heads and embedding scales to bfloat16, where MaxText and its converter do.
    tokenizer: the tokenizer.json or its folder; by default that of the first model that has one.
    **settings: `max_kl_div=0.015`, the largest divergence of a token with which a comparison passes; `threads=4`;
      `maxtext_config="maxtext.yml"`; and MaxText settings of a checkpoint, `model_name="llama3.1-8b"`.

  Returns:
    For one model its logits, float32, positions x vocabulary; sequences lie one after another. For a comparison the
    report, as `maxport logits --json` prints it: "pass", and under "comparisons" the figures.

  Raises:
    MaxportError: the input makes no sense, a model cannot be read, or its family is not known.
  """
  with tempfile.TemporaryDirectory(prefix="maxport-") as folder:
    command = ["logits", os.fspath(a)] if b is None else ["logits", os.fspath(a), os.fspath(b)]
    if ids is not None:
      file = pathlib.Path(folder) / "ids.txt"
      file.write_text(_lines(ids))
      command.append(f"--input={file}")
    options = {"prompt": prompt, "golden_logits": golden_logits, "tokenizer": tokenizer,
               **{key: settings.pop(key, None) for key in ("max_kl_div", "threads", "maxtext_config")}}
    command += [f"--{key}={value}" for key, value in options.items() if value is not None]
    command += ["--like_maxtext"] * like_maxtext + words(settings)
    if b is not None or golden_logits is not None:
      return _program.run(command)
    output = pathlib.Path(folder) / "logits.safetensors"
    _program.run([*command, f"--output={output}"])
    found = np.asarray(open_checkpoint(output)["logits"])
    return found.reshape(-1, found.shape[-1])


def _lines(ids: Ids) -> str:
  """One sequence a line."""
  if not len(ids):
    raise errors.InvalidArgumentError("ids: there is no token id")
  sequences: Sequence[Any] | np.ndarray = ids if np.ndim(ids[0]) else [ids]
  try:
    return "\n".join(" ".join(str(np.asarray(token).__index__()) for token in sequence) for sequence in sequences)
  except TypeError as error:
    raise errors.InvalidArgumentError(f"ids: {error}; a sequence of token ids, or several, are needed") from error
