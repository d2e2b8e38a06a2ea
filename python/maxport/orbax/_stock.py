"""What is needed of Orbax v1 and that its public modules do not export (checked against orbax-checkpoint 0.12.8).

Handlers of whole checkpointables are public (`ocp.handlers`); those of single leaves are not yet, though the
documentation describes them. Everything unexported that maxport uses is named here, so that a new Orbax is one file's work.
"""

try:
  from orbax.checkpoint.experimental.v1._src.context.context import get_context
  from orbax.checkpoint.experimental.v1._src.serialization.numpy_leaf_handler import NumpyLeafHandler
  from orbax.checkpoint.experimental.v1._src.serialization.registry import (
      StandardLeafHandlerRegistry,
      UnregisteredTypeError,
  )
  from orbax.checkpoint.experimental.v1._src.serialization.types import is_placeholder
except ImportError as error:
  import orbax.checkpoint

  raise ImportError(
      f"maxport.orbax knows the leaf handlers of orbax-checkpoint 0.12; release {orbax.checkpoint.__version__} "
      f"has moved them ({error})") from error

__all__ = [
    "NumpyLeafHandler",
    "StandardLeafHandlerRegistry",
    "UnregisteredTypeError",
    "get_context",
    "is_placeholder",
]
