"""What is needed of Orbax v1 and that its public modules do not export (checked against orbax-checkpoint 0.12.8).

Handlers of whole checkpointables are public (`ocp.handlers`); those of single leaves are not yet, though the
documentation describes them. Everything unexported that maxport uses is named here, so that a new Orbax is one file's work.
"""

from typing import Any

from orbax.checkpoint.type_handlers import NumpyHandler

from maxport.orbax._pieces import PiecewiseNumpyHandler

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
    "StandardLeafHandlerRegistry",
    "UnregisteredTypeError",
    "get_context",
    "is_placeholder",
    "numpy_leaf_handler",
]


def numpy_leaf_handler(context: Any) -> Any:
  """Orbax's handler of `np.ndarray` leaves, which writes large ones in pieces unless Pathways writes them."""
  handler = NumpyLeafHandler(context=context)
  if type(handler._handler_impl) is NumpyHandler:
    handler._handler_impl = PiecewiseNumpyHandler(deepcopy_host_arrays=context.memory.deepcopy_host_arrays)
  return handler
