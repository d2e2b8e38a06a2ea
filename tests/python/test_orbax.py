"""Lazy tensors through stock Orbax v1 (maxport.orbax)."""

import json
import pathlib
import subprocess
import sys
import warnings
import weakref

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import orbax.checkpoint as ocp0
import pytest
from leaves import flatten
from orbax.checkpoint import v1 as ocp

import maxport
from maxport import orbax as lazy
from maxport.orbax import _pieces


class Lazy:
  """A lazy leaf in the manner of converters: attributes set per instance, the oldest form of `__array__`."""

  def __init__(self, shape, dtype, load):
    self.shape, self.dtype, self._load = shape, dtype, load
    self.materialized = 0

  def __array__(self, dtype=None):
    self.materialized += 1
    return self._load()


def lazy_like(array) -> Lazy:
  return Lazy(array.shape, array.dtype, lambda: np.array(array))


def some_arrays() -> dict[str, np.ndarray]:
  random = np.random.default_rng(7)
  return {
      "float32": random.normal(size=(5, 7)).astype(np.float32),
      "bfloat16": random.normal(size=(4, 3, 2)).astype(ml_dtypes.bfloat16),
      "float8": random.normal(size=(16,)).astype(ml_dtypes.float8_e4m3fn),
      "int64": random.integers(-9, 9, size=(3, 1)),
      "scalar": np.array(2.5, np.float16),
      "bool": np.array([True, False, True]),
  }


def save(path, tree, *, registry=None, configure=None, name="items"):
  context = ocp.Context()
  context.checkpointables.registry = registry or lazy.build_lazy_tensor_checkpointables_registry()
  if configure:
    configure(context)
  with context:
    ocp.save_checkpointables(path, {name: tree})


def restore_v0(path, name="items"):
  return ocp0.PyTreeCheckpointer().restore(path / name)


def recorded_types(path) -> set[str]:
  metadata = json.loads((path / "items" / "_METADATA").read_text())["tree_metadata"]
  return {leaf["value_metadata"]["value_type"] for leaf in metadata.values()}


def assert_same(found, wanted):
  found, wanted = flatten(found), flatten(wanted)
  assert sorted(found) == sorted(wanted)
  for path, array in wanted.items():
    assert found[path].dtype == array.dtype, path
    np.testing.assert_array_equal(found[path], array, strict=True)


def test_stock_orbax_refuses_a_tree_with_lazy_leaves(tmp_path):
  with pytest.raises(KeyError, match='Could not identify a valid handler for the checkpointable: "items"'):
    ocp.save_checkpointables(tmp_path / "0", {"items": {"a": lazy_like(np.ones(3))}})


@pytest.mark.parametrize("ocdbt", [True, False])
@pytest.mark.parametrize("zarr3", [True, False])
def test_lazy_leaves_come_back_as_the_arrays_that_they_stand_for(tmp_path, ocdbt, zarr3):
  def configure(context):
    context.array.saving.use_ocdbt = ocdbt
    context.array.saving.use_zarr3 = zarr3

  arrays = {"outer": some_arrays(), "last": np.arange(6).reshape(2, 3)}
  save(tmp_path / "0", jax.tree.map(lazy_like, arrays), configure=configure)
  assert recorded_types(tmp_path / "0") == {"np.ndarray"}
  assert_same(restore_v0(tmp_path / "0"), arrays)
  assert_same(ocp.load_checkpointables(tmp_path / "0")["items"], arrays)


def test_other_leaves_are_saved_as_stock_orbax_saves_them(tmp_path):
  tree = {"lazy": lazy_like(np.ones(3)), "numpy": np.zeros(2), "jax": jnp.ones(4), "int": 3, "text": "x", "none": {}}
  save(tmp_path / "0", tree)
  assert recorded_types(tmp_path / "0") == {"np.ndarray", "jax.Array", "scalar", "string", "Dict"}
  restored = restore_v0(tmp_path / "0")
  assert (restored["int"], restored["text"], restored["none"]) == (3, "x", {})
  np.testing.assert_array_equal(restored["jax"], np.ones(4))


def test_without_the_secondary_type_string_orbax_v0_cannot_restore(tmp_path, monkeypatch):
  from orbax.checkpoint.experimental.v1._src.serialization.registry import StandardLeafHandlerRegistry

  add = StandardLeafHandlerRegistry.add

  def add_without(self, leaf, abstract, handler, override=False, secondary_typestrs=None):
    mine = issubclass(handler, lazy.LazyTensorLeafHandler)
    add(self, leaf, abstract, handler, override, None if mine else secondary_typestrs)

  monkeypatch.setattr(StandardLeafHandlerRegistry, "add", add_without)
  save(tmp_path / "0", {"a": lazy_like(np.ones(3))})
  with pytest.raises(ValueError, match="lookup failed for: type=maxport.orbax._leaf.LazyTensorLeafHandler"):
    restore_v0(tmp_path / "0")


def restore_by_recorded_name(root):
  registry = ocp0.handlers.create_default_handler_registry()
  return ocp0.CheckpointManager(root, handler_registry=registry).restore(0)


def test_a_v0_manager_restores_by_the_recorded_handler_name(tmp_path):
  arrays = some_arrays()
  save(tmp_path / "0", jax.tree.map(lazy_like, arrays))
  assert_same(restore_by_recorded_name(tmp_path)["items"], arrays)


def test_a_v0_manager_could_not_restore_by_the_handler_s_own_name(tmp_path):
  class OwnName(lazy.LazyTensorPyTreeHandler):
    pass

  registry = lazy.build_lazy_tensor_checkpointables_registry(handler_type=OwnName)
  save(tmp_path / "0", {"a": lazy_like(np.ones(3))}, registry=registry)
  with pytest.raises(ValueError, match='"items" was found in the checkpoint, but could not be restored'):
    restore_by_recorded_name(tmp_path)


def test_one_leaf_is_in_memory_at_a_time(tmp_path):
  alive, most = [], []

  def load():
    most.append(sum(reference() is not None for reference in alive))
    array = np.full((64, 64), float(len(alive)), np.float32)
    alive.append(weakref.ref(array))
    return array

  save(tmp_path / "0", {f"{i:02}": Lazy((64, 64), np.float32, load) for i in range(12)})
  assert most == [0] * 12
  assert [reference() for reference in alive] == [None] * 12
  restored = restore_v0(tmp_path / "0")
  assert sorted(float(array[0, 0]) for array in restored.values()) == list(range(12))


@pytest.mark.parametrize("ocdbt", [True, False])
@pytest.mark.parametrize("zarr3", [True, False])
def test_large_leaves_are_cut_into_chunks_and_come_back_whole(tmp_path, monkeypatch, ocdbt, zarr3):
  """With small limits in the place of large arrays; extents are primes, so that chunks end beyond the arrays."""
  monkeypatch.setattr(_pieces, "CUT_FROM", 64)
  monkeypatch.setattr(_pieces, "CHUNK", 96)
  monkeypatch.setattr(_pieces, "COMMIT", 200)
  monkeypatch.setattr(_pieces, "MOST_COMMITS", 1000)

  def configure(context):
    context.array.saving.use_ocdbt = ocdbt
    context.array.saving.use_zarr3 = zarr3

  random = np.random.default_rng(5)
  arrays = {"rows": random.normal(size=(31, 7)), "long": random.integers(0, 99, size=(499,)),
            "deep": random.normal(size=(3, 5, 2, 37)).astype(np.float32), "small": np.ones(3),
            "strided": random.normal(size=(7, 31)).T}
  save(tmp_path / "0", jax.tree.map(lazy_like, arrays), configure=configure)
  assert_same(restore_v0(tmp_path / "0"), arrays)
  assert_same(ocp.load_checkpointables(tmp_path / "0")["items"], arrays)
  chunks = {name: leaf.storage_metadata.chunk_shape for name, leaf in stored(tmp_path / "0").items()}
  assert chunks == {"rows": (1, 7), "long": (12,), "deep": (1, 1, 1, 24), "small": (3,), "strided": (1, 7)}


def stored(path):
  return ocp.checkpointables_metadata(path).metadata["items"]


def test_chunks_that_the_context_asks_for_stay(tmp_path, monkeypatch):
  monkeypatch.setattr(_pieces, "CUT_FROM", 64)
  monkeypatch.setattr(_pieces, "CHUNK", 96)

  def configure(context):
    context.array.saving.storage_options.chunk_byte_size = 256

  array = np.arange(8 * 32.0).reshape(8, 32)
  save(tmp_path / "0", {"a": lazy_like(array)}, configure=configure)
  rows, columns = stored(tmp_path / "0")["a"].storage_metadata.chunk_shape
  assert rows * columns * array.itemsize == 256
  assert_same(restore_v0(tmp_path / "0"), {"a": array})


def test_chunks_that_fill_whole_data_files_are_cut(tmp_path, monkeypatch):
  monkeypatch.setattr(_pieces, "CUT_FROM", 64)
  monkeypatch.setattr(_pieces, "CUT_BEYOND", 1024)
  monkeypatch.setattr(_pieces, "CHUNK", 512)

  def configure(context):
    context.array.saving.ocdbt_target_data_file_size = 4096

  array = np.arange(1024.0).reshape(32, 32)
  save(tmp_path / "0", {"a": lazy_like(array)}, configure=configure)
  assert stored(tmp_path / "0")["a"].storage_metadata.chunk_shape == (2, 32)
  assert_same(restore_v0(tmp_path / "0"), {"a": array})


def test_a_cast_is_written_in_chunks_too(tmp_path, monkeypatch):
  monkeypatch.setattr(_pieces, "CUT_FROM", 64)
  monkeypatch.setattr(_pieces, "CHUNK", 96)

  def configure(context):
    context.array.saving.storage_options.dtype = np.float32

  save(tmp_path / "0", {"a": lazy_like(np.arange(99))}, configure=configure)
  assert_same(restore_v0(tmp_path / "0"), {"a": np.arange(99, dtype=np.float32)})


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (2, 3, 5), (7, 1, 3)])
@pytest.mark.parametrize("most", [1, 8, 40, 1 << 20])
def test_batches_cover_an_array_once_and_keep_to_their_size(monkeypatch, shape, most):
  monkeypatch.setattr(_pieces, "CHUNK", 16)
  value = np.zeros(shape, np.int32)
  chunk = _pieces.chunk_of(shape, 4)
  assert np.prod(chunk, dtype=int) * 4 <= 16
  for batch in _pieces.batches(_pieces.boxes(shape, chunk), value, most):
    assert len(batch) == 1 or sum(value[box].nbytes for box in batch) <= most
    for box in batch:
      value[box] += 1
  assert (value == 1).all()


def test_a_large_array_in_chunks_of_columns_is_read_in_pieces(tmp_path):
  """maxport.open reads more than 64 MiB piece by piece; here the pieces lie between one another in memory."""
  def configure(context):
    context.array.saving.storage_options.chunk_byte_size = 8 << 20

  array = np.arange(8 * (3 << 20), dtype=np.int32).reshape(8, -1)
  save(tmp_path / "0", {"a": array}, configure=configure)
  lazy_array = maxport.open(tmp_path / "0")["a"]
  np.testing.assert_array_equal(np.asarray(lazy_array), array, strict=True)
  np.testing.assert_array_equal(lazy_array[1:7, 5:-5], array[1:7, 5:-5], strict=True)


def test_a_save_needs_little_more_than_its_largest_leaf():
  """In a process of its own; stock Orbax's way of writing one array takes 1.8 times its size."""
  script = pathlib.Path(__file__).parents[2] / "conformance" / "bench_lazy_save.py"
  run = subprocess.run([sys.executable, script, "--only", "lazy", "--tensors", "3", "--megabytes", "128"],
                       capture_output=True, text=True, check=False)
  assert run.returncode == 0, run.stderr
  assert json.loads(run.stdout)["in_tensors"] < 1.5


def test_a_leaf_is_materialized_once_a_save_and_never_kept(tmp_path):
  leaf = lazy_like(np.ones(3))
  save(tmp_path / "0", {"a": leaf})
  assert leaf.materialized == 1
  save(tmp_path / "1", {"a": leaf})
  assert leaf.materialized == 2


def test_leaves_are_written_in_the_dtype_that_they_declare(tmp_path):
  values = np.linspace(-2, 2, 12).reshape(3, 4)
  tree = {"half": Lazy((3, 4), np.float16, lambda: values), "brain": Lazy((3, 4), ml_dtypes.bfloat16, lambda: values)}
  save(tmp_path / "0", tree)
  assert_same(restore_v0(tmp_path / "0"),
              {"half": values.astype(np.float16), "brain": values.astype(ml_dtypes.bfloat16)})


def test_the_storage_dtype_of_the_context_is_honoured(tmp_path):
  def configure(context):
    context.array.saving.storage_options.dtype = np.float32

  save(tmp_path / "0", {"a": lazy_like(np.arange(4, dtype=np.int32))}, configure=configure)
  assert restore_v0(tmp_path / "0")["a"].dtype == np.float32


def test_what_a_leaf_says_of_its_size_is_not_needed(tmp_path):
  class Guarded(Lazy):
    @property
    def nbytes(self):
      raise AssertionError("asked for nbytes")

  save(tmp_path / "0", {"a": Guarded([2, 2], np.float32, lambda: np.ones((2, 2)))})
  assert_same(restore_v0(tmp_path / "0"), {"a": np.ones((2, 2), np.float32)})


def test_transposed_and_listed_values_are_saved_right(tmp_path):
  values = np.arange(12.0).reshape(3, 4)
  save(tmp_path / "0", {"a": Lazy([4, 3], "float64", lambda: values.T), "b": Lazy((), int, lambda: np.array(5))})
  assert_same(restore_v0(tmp_path / "0"), {"a": values.T, "b": np.array(5)})


def test_saving_a_leaf_with_the_oldest_array_method_warns_of_nothing(tmp_path):
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    save(tmp_path / "0", {"a": lazy_like(np.ones(3))})


def test_an_asynchronous_save_can_go_on_in_the_background(tmp_path):
  arrays = some_arrays()
  context = ocp.Context()
  context.checkpointables.registry = lazy.build_lazy_tensor_checkpointables_registry()
  with context:
    responses = [
        ocp.save_checkpointables_async(tmp_path / str(step), {"items": jax.tree.map(lazy_like, arrays)})
        for step in range(3)
    ]
  for step, response in enumerate(responses):
    response.result()
    assert_same(restore_v0(tmp_path / str(step)), arrays)


def test_a_lazy_tree_serves_as_the_target_of_a_load(tmp_path):
  arrays = {"a": np.arange(4.0)}
  registry = lazy.build_lazy_tensor_checkpointables_registry()
  target = jax.tree.map(lazy_like, arrays)
  save(tmp_path / "0", target, registry=registry)
  context = ocp.Context()
  context.checkpointables.registry = registry
  with context:
    assert_same(ocp.load_checkpointables(tmp_path / "0", {"items": target})["items"], arrays)
  assert target["a"].materialized == 1


def test_a_load_that_fails_ends_the_save_with_its_own_error_and_no_checkpoint(tmp_path):
  def load():
    raise OSError("shard 3 is gone")

  with pytest.raises(OSError, match="shard 3 is gone"):
    save(tmp_path / "0", {"a": Lazy((2,), np.float32, load)})
  assert not (tmp_path / "0").exists()


@pytest.mark.parametrize(("leaf", "message"), [
    (Lazy((3, 2), np.float32, lambda: np.ones((2, 3))), r"'layer\.w': __array__ returned shape \(2, 3\), expected \(3, 2\)"),
    (Lazy((0, 2), np.float32, lambda: np.ones((0, 2))), r"'layer\.w' of type .*Lazy: shape \(0, 2\) has no elements"),
    (Lazy((2,), object, lambda: np.ones(2)), r"'layer\.w' of type .*Lazy: dtype object holds Python objects"),
    (Lazy((2,), "torch.float32", lambda: np.ones(2)), r"'layer\.w' of type .*Lazy: shape .* dtype 'torch.float32' are not"),
    (type("Bare", (), {"__array__": lambda self: np.ones(2)})(), r"'layer\.w' .*Bare: it has no attribute shape and no dtype"),
])
def test_a_bad_leaf_is_named_with_what_is_wrong(tmp_path, leaf, message):
  with pytest.raises(ValueError, match=message):
    save(tmp_path / "0", {"layer": {"w": leaf}})
  assert not (tmp_path / "0").exists()


def test_a_leaf_without_a_handler_is_named_by_path_and_type(tmp_path):
  with pytest.raises(ValueError, match=r"saving 'items': no leaf handler for a\.b \(builtins\.complex\)"):
    save(tmp_path / "0", {"a": {"b": 1j, "c": lazy_like(np.ones(2))}})


def test_the_registry_holds_the_global_one_and_leaves_it_alone():
  before = list(ocp.handlers.global_registry().get_all_entries())
  registry = lazy.build_lazy_tensor_checkpointables_registry()
  assert registry.get("items") is lazy.LazyTensorPyTreeHandler
  assert list(registry.get_all_entries())[:len(before)] == before
  assert list(ocp.handlers.global_registry().get_all_entries()) == before


def test_a_registry_passed_in_is_added_to():
  mine = ocp.handlers.local_registry(include_global_registry=False)
  assert lazy.build_lazy_tensor_checkpointables_registry(mine) is mine
  assert lazy.build_lazy_tensor_checkpointables_registry(mine) is mine
  assert list(mine.get_all_entries()) == [(lazy.LazyTensorPyTreeHandler, "items")]


def test_a_read_only_registry_is_copied(tmp_path):
  fresh = ocp.Context().checkpointables.registry
  registry = lazy.build_lazy_tensor_checkpointables_registry(fresh)
  assert not fresh.has("items")
  save(tmp_path / "0", {"a": lazy_like(np.ones(3))}, registry=registry)
  assert_same(restore_v0(tmp_path / "0"), {"a": np.ones(3)})


def test_the_handler_can_be_bound_to_another_item(tmp_path):
  registry = lazy.build_lazy_tensor_checkpointables_registry(checkpointable_name="params")
  save(tmp_path / "0", {"a": lazy_like(np.ones(3))}, registry=registry, name="params")
  assert_same(restore_v0(tmp_path / "0", "params"), {"a": np.ones(3)})


def test_an_item_that_has_another_handler_is_not_taken_over():
  registry = ocp.handlers.local_registry()
  registry.add(ocp.handlers.PyTreeHandler, checkpointable_name="items")
  with pytest.raises(ValueError, match="items already exists"):
    lazy.build_lazy_tensor_checkpointables_registry(registry)


@pytest.mark.parametrize(("candidate", "expected"),
                         [(Lazy, True), (np.ndarray, False), (np.float32, False), (jax.Array, False), (int, False),
                          (str, False), (dict, False)])
def test_lazy_tensors_are_told_from_arrays_by_their_type(candidate, expected):
  assert issubclass(candidate, lazy.LazyTensor) is expected
