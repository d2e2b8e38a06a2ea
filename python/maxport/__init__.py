"""maxport carries model weights between Hugging Face (safetensors) and MaxText (Orbax) checkpoints."""

from maxport._arrays import LazyArray
from maxport._checkpoint import Checkpoint, open  # noqa: A004
from maxport._core import __version__
from maxport.errors import (
    CorruptDataError,
    InternalError,
    InterruptedWorkError,
    InvalidArgumentError,
    IoError,
    MaxportError,
    NotFoundError,
    ResourceLimitError,
    UnsupportedError,
)

__all__ = [
    "Checkpoint",
    "CorruptDataError",
    "InternalError",
    "InterruptedWorkError",
    "InvalidArgumentError",
    "IoError",
    "LazyArray",
    "MaxportError",
    "NotFoundError",
    "ResourceLimitError",
    "UnsupportedError",
    "__version__",
    "open",
]
