"""MaxText's own converter with lazy tensors that reach the disk."""

from __future__ import annotations

import functools

from maxport.orbax._leaf import LazyTensorLeafHandler
from maxport.orbax._tree import LazyTensorPyTreeHandler, _record_as_stock, build_lazy_tensor_checkpointables_registry


class _MaxTextLeafHandler(LazyTensorLeafHandler):
  """MaxText's `LazyTensor.dtype` repeats `--save_dtype`, but some of its hooks deliver another dtype.

  Its eager path and its sharded path store what the hook delivers (norm scales of Gemma 2 and 3 in float32); so does
  this one, so that all three write the same leaves.
  """

  casts_to_declared_dtype = False


@_record_as_stock
class _MaxTextPyTreeHandler(LazyTensorPyTreeHandler):
  leaf_handler_type = _MaxTextLeafHandler


def patch_maxtext() -> None:
  """Lets MaxText (0.2.5) save lazy tensors through Orbax v1, in this process; nothing on disk changes.

  MaxText registers its `LazyTensor` with Orbax v0 but saves through v1, whose registry is another one. Every Orbax
  context that MaxText builds from now on gets a registry in which "items" takes lazy tensors. Calling it again does
  nothing.

  Raises:
    ImportError: MaxText is not installed.
  """
  from maxtext.common import checkpoint_context

  stock_build_context = checkpoint_context.build_context
  if getattr(stock_build_context, "takes_lazy_tensors", False):
    return

  @functools.wraps(stock_build_context)
  def build_context(*args, **kwargs):
    context = stock_build_context(*args, **kwargs)
    context.checkpointables.registry = build_lazy_tensor_checkpointables_registry(
        context.checkpointables.registry, handler_type=_MaxTextPyTreeHandler)
    return context

  setattr(build_context, "takes_lazy_tensors", True)
  checkpoint_context.build_context = build_context
