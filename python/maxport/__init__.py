"""maxport carries model weights between Hugging Face (safetensors) and MaxText (Orbax) checkpoints."""

import importlib

# Names are imported when they are first used: the command line program starts without NumPy, and maxport.orbax works
# where the compiled module does not.
_PLACES = {
    "Checkpoint": "maxport._checkpoint",
    "Comparison": "maxport._comparison",
    "Difference": "maxport._comparison",
    "LazyArray": "maxport._arrays",
    "Plan": "maxport._planning",
    "__version__": "maxport._core",
    "compare": "maxport._comparison",
    "convert": "maxport._conversion",
    "inspect": "maxport._conversion",
    "logits": "maxport._logits",
    "open": "maxport._checkpoint",
    "plan": "maxport._planning",
    "verify": "maxport._conversion",
    **dict.fromkeys(
        ("CorruptDataError", "InternalError", "InterruptedWorkError", "InvalidArgumentError", "IoError", "MaxportError",
         "NotFoundError", "ResourceLimitError", "UnsupportedError"), "maxport.errors"),
}

__all__ = sorted(_PLACES)


def __getattr__(name: str):
  if name not in _PLACES:
    raise AttributeError(f"module 'maxport' has no attribute {name!r}")
  value = getattr(importlib.import_module(_PLACES[name]), name)
  globals()[name] = value
  return value


def __dir__():
  return __all__
