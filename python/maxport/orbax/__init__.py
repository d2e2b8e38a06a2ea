"""Lazy tensors in stock Orbax v1.

A *lazy tensor* is any leaf with `shape`, `dtype` and `__array__`: something that knows what it is and can produce
its numbers when asked. Stock Orbax v1 keeps a leaf-handler registry of its own, apart from v0's, and that registry
has no entry for such a type; a tree that holds one ends in
`NoEntryError: Could not identify a valid handler for the checkpointable: "items"`. The registry built here has one:

    from orbax.checkpoint import v1 as ocp
    context = ocp.Context()
    context.checkpointables.registry = maxport.orbax.build_lazy_tensor_checkpointables_registry()
    with context:
      ocp.save_checkpointables(path, {"items": tree})

Leaves are materialized one at a time while they are written, never kept, and recorded as `np.ndarray`, so that any
Orbax, v0 or v1, restores the result without maxport.
"""

from maxport.orbax._leaf import LazyTensor, LazyTensorLeafHandler
from maxport.orbax._maxtext import patch_maxtext
from maxport.orbax._tree import LazyTensorPyTreeHandler, build_lazy_tensor_checkpointables_registry

__all__ = [
    "LazyTensor",
    "LazyTensorLeafHandler",
    "LazyTensorPyTreeHandler",
    "build_lazy_tensor_checkpointables_registry",
    "patch_maxtext",
]
