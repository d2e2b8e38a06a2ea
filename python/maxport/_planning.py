"""Plans: what a Hugging Face model becomes in MaxText."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from maxport import _core
from maxport._checkpoint import Checkpoint


class Plan(Checkpoint):
  """A Hugging Face model as MaxText's parameters: a mapping of "params.params..." to `LazyArray`s.

  Nothing has been converted: a parameter, or the part of it that is asked for, is made from the source tensors when it
  is indexed, with the numbers that a conversion would write.

  Attributes:
    family: the model family, e.g. "llama".
    account: what the conversion uses, ignores and fills, as `maxport to_maxtext --dry_run --json` prints it.
    steps: the plan itself: tensors, leaves, and the arithmetic between them.
  """

  def __init__(self, core: _core.PlannedModel):
    super().__init__(core)
    self.family: str = core.family
    self.account: dict[str, Any] = json.loads(core.account)
    self.steps: dict[str, Any] = json.loads(core.plan)

  def __repr__(self) -> str:
    return f"<maxport.Plan {self.path!r} family={self.family} leaves={len(self)}>"


def words(settings: dict[str, Any]) -> list[str]:
  """Keyword arguments as the `key=value` words of the command line; None leaves a setting out."""
  text = {True: "true", False: "false"}
  return [f"{key}={text[value] if isinstance(value, bool) else value}" for key, value in settings.items()
          if value is not None]


def plan(hf_model_path: str | os.PathLike[str], arguments: Sequence[str] = (), **settings: Any) -> Plan:
  """Plans the conversion of a Hugging Face model to MaxText; reads configuration and headers only.

  Args:
    hf_model_path: the model's folder.
    arguments: words as on the command line of `maxport to_maxtext`, e.g. "scan_layers=false".
    **settings: the same as keywords: `scan_layers=False`, `save_dtype="float32"`, `model_name="llama3.1-8b"`.

  Raises:
    MaxportError: above all when a tensor is missing, left over or of another shape; the text names every one.
  """
  return Plan(_core.plan([f"hf_model_path={os.fspath(hf_model_path)}", *arguments, *words(settings)]))
