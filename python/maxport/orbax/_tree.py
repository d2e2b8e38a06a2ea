"""The handler of whole trees and the registry that makes Orbax use it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import jax
from orbax.checkpoint import v1 as ocp

from maxport.orbax import _stock
from maxport.orbax._leaf import DeclaredLeaf, LazyTensor, LazyTensorLeafHandler


def _dotted(path: tuple) -> str:
  return jax.tree_util.keystr(path, simple=True, separator=".")


class LazyTensorPyTreeHandler(ocp.CheckpointableHandler):
  """Orbax's own `PyTreeHandler`, with one more leaf type: lazy tensors, by a `LazyTensorLeafHandler`."""

  leaf_handler_type = LazyTensorLeafHandler

  def __init__(self, *, context: ocp.Context | None = None):
    self._leaves = _stock.StandardLeafHandlerRegistry()
    # Orbax records the first secondary type string as the leaf's value_type, and readers look a handler up by it.
    # Without one the handler's own class path would be recorded, which no reader knows but this one.
    self._leaves.add(LazyTensor, LazyTensor, self.leaf_handler_type, secondary_typestrs=["np.ndarray"])
    self._handler = ocp.handlers.PyTreeHandler(context=context, leaf_handler_registry=self._leaves)

  def _unknown_leaves(self, tree: Any, known) -> list[str]:
    unknown = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
      leaf_type = leaf if isinstance(leaf, type) else type(leaf)
      if not _stock.is_placeholder(leaf) and not known(leaf_type):
        unknown.append(f"{_dotted(path)} ({leaf_type.__module__}.{leaf_type.__qualname__})")
    return unknown

  def _require(self, doing: str, unknown: list[str]) -> None:
    if unknown:
      more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
      raise _stock.UnregisteredTypeError(
          f"{doing}: no leaf handler for {', '.join(unknown[:5])}{more}; a leaf must be an array, a scalar, a string "
          "or a lazy tensor, which has shape, dtype and __array__")

  async def save(self, directory: Any, checkpointable: Any) -> Awaitable[None]:
    self._require(f"saving {directory.path.name!r}", self._unknown_leaves(checkpointable, self._leaves.is_handleable))
    # All checks come first: once Orbax has begun, an error leaves its threads waiting for a directory for minutes.
    declared = jax.tree_util.tree_map_with_path(
        lambda path, leaf: DeclaredLeaf(_dotted(path), leaf) if isinstance(leaf, LazyTensor) else leaf, checkpointable)
    return await self._handler.save(directory, declared)

  async def load(self, directory: Any, abstract_checkpointable: Any = None) -> Awaitable[Any]:
    unknown = self._unknown_leaves(abstract_checkpointable, self._leaves.is_abstract_handleable)
    self._require(f"loading {directory.name!r}", unknown)
    return await self._handler.load(directory, abstract_checkpointable)

  async def metadata(self, directory: Any) -> Any:
    return await self._handler.metadata(directory)

  def is_handleable(self, checkpointable: Any) -> bool:
    return self._handler.is_handleable(checkpointable)

  def is_abstract_handleable(self, abstract_checkpointable: Any) -> bool:
    return self._handler.is_abstract_handleable(abstract_checkpointable)


def _record_as_stock(handler_type: type) -> type:
  """Makes Orbax write a handler name that other readers know into `_CHECKPOINT_METADATA`.

  Orbax derives that name from the class's module and qualified name and offers no other way to choose it. The
  contents are those of a plain tree; this is the one name that v0 managers and v1 both resolve.
  """
  handler_type.__module__ = "orbax.checkpoint._src.handlers.pytree_checkpoint_handler"
  handler_type.__qualname__ = "PyTreeCheckpointHandler"
  return handler_type


_record_as_stock(LazyTensorPyTreeHandler)


def build_lazy_tensor_checkpointables_registry(
    registry: Any = None,
    *,
    checkpointable_name: str = "items",
    handler_type: type = LazyTensorPyTreeHandler,
) -> Any:
  """A registry in which `checkpointable_name` is saved and loaded with lazy tensors allowed.

  Args:
    registry: a registry to add to. Without one, a new local registry that holds Orbax's global entries. A read-only
      one, such as a fresh `ocp.Context` has, is copied first.
    checkpointable_name: the item that the handler is bound to; MaxText calls it "items".
    handler_type: the handler to bind.

  Returns:
    The registry, to be assigned to `context.checkpointables.registry` before the context is entered.

  Raises:
    ValueError: another handler is bound to `checkpointable_name`.
  """
  if registry is None:
    registry = ocp.handlers.local_registry()
  if registry.has(checkpointable_name) and registry.get(checkpointable_name) is handler_type:
    return registry
  try:
    registry.add(handler_type, checkpointable_name=checkpointable_name)
  except NotImplementedError:
    registry = ocp.handlers.local_registry(registry, include_global_registry=False)
    registry.add(handler_type, checkpointable_name=checkpointable_name)
  return registry
