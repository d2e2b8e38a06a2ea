"""maxport carries model weights between Hugging Face (safetensors) and MaxText (Orbax) checkpoints."""

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
    "CorruptDataError",
    "InternalError",
    "InterruptedWorkError",
    "InvalidArgumentError",
    "IoError",
    "MaxportError",
    "NotFoundError",
    "ResourceLimitError",
    "UnsupportedError",
]
