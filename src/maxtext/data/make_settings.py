"""Writes settings.json: name, type, default and choices of every setting of an installed MaxText.

    python make_settings.py > settings.json

Runs in an environment that has maxtext. A default is what base.yml says, or the type's own default where base.yml is
silent. Long structures (mesh axes, sharding rules) carry no default: converting weights needs none of them.
"""

import enum
import json
import os
import typing

os.environ["JAX_PLATFORMS"] = "cpu"

from maxtext.configs import types
from omegaconf import OmegaConf

LONGEST_DEFAULT = 200
# model_name has a closed list in MaxText; here the catalog decides.
WITHOUT_CHOICES = {"model_name"}


def kind(annotation):
  """(type, nullable, choices) of one annotation."""
  parts = typing.get_args(annotation) if typing.get_origin(annotation) in (typing.Union, type(int | None)) else (annotation,)
  nullable = type(None) in parts
  names, choices = set(), []
  for part in parts:
    origin = typing.get_origin(part)
    if part is type(None):
      continue
    if origin is typing.Annotated:
      part = typing.get_args(part)[0]
      origin = typing.get_origin(part)
    if origin is typing.Literal:
      choices += list(typing.get_args(part))
      names.add(type(choices[-1]).__name__)
    elif isinstance(part, type) and issubclass(part, enum.Enum):
      choices += [member.value for member in part]
      names.add(type(choices[-1]).__name__)
    elif origin in (list, tuple) or part in (list, tuple):
      names.add("list")
    elif origin is dict or part is dict:
      names.add("object")
    elif part in (bool, int, float, str):
      names.add(part.__name__)
    else:
      return "any", True, []
  if names == {"int", "float"}:
    names = {"float"}
  return (names.pop() if len(names) == 1 else "any"), nullable, choices


def plain(value):
  if isinstance(value, enum.Enum):
    value = value.value
  return None if isinstance(value, str) and value.lower() == "none" else value


def collect(model, prefix, base, out):
  for name, field in model.model_fields.items():
    key = prefix + name
    if hasattr(field.annotation, "model_fields"):
      out[key] = {"type": "object"}
      collect(field.annotation, key + ".", base.get(name) or {}, out)
      continue
    what, nullable, choices = kind(field.annotation)
    default = plain(base[name] if name in base else field.get_default(call_default_factory=True))
    if what == "list" and default == "":
      default = []
    entry = {"type": what}
    if nullable or default is None:
      entry["null"] = True
    if choices and key not in WITHOUT_CHOICES:
      entry["choices"] = choices
    if len(json.dumps(default)) <= LONGEST_DEFAULT:
      entry["default"] = default
    out[key] = entry


def main():
  path = os.path.join(os.path.dirname(types.__file__), "base.yml")
  out = {}
  collect(types.MaxTextConfig, "", OmegaConf.to_container(OmegaConf.load(path)), out)
  print("{")
  lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in out.items()]
  print(",\n".join(lines))
  print("}")


if __name__ == "__main__":
  main()
