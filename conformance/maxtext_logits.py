"""Loads a checkpoint with MaxText itself, runs it in float32 and compares the logits with a reference.

usage: maxtext_logits.py ITEMS REFERENCE.safetensors [CONFIGURATION.yml] [key=value ...]

ITEMS is BASE_OUTPUT_DIRECTORY/0/items; REFERENCE holds `input_ids` and `logits` (hf_logits.py makes it); CONFIGURATION is
the run configuration that maxport writes beside a checkpoint (without one: MaxText's base.yml). Prints a JSON object.
Needs the environment of requirements/maxtext.txt.
"""
import json
import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import jax

jax.config.update("jax_default_prng_impl", "unsafe_rbg")
jax.config.update("jax_default_matmul_precision", "highest")
import maxtext
import numpy as np
import safetensors.numpy
from maxtext.common.common_types import DECODING_ACTIVE_SEQUENCE_INDICATOR, MODEL_MODE_TRAIN
from maxtext.configs import pyconfig
from maxtext.utils import maxtext_utils, model_creation_utils

# How to compute, not what: everything that describes the model comes from the caller.
EXACT = ["override_model_config=true", "hardware=cpu", "skip_jax_distributed_system=true", "run_name=conformance", "log_config=false",
         "attention=dot_product", "dtype=float32", "weight_dtype=float32", "matmul_precision=highest", "float32_logits=true",
         "float32_qk_product=true", "sparse_matmul=false", "megablox=false", "capacity_factor=-1.0", "enable_dropout=false"]


def forward(items: str, ids: np.ndarray, configuration: str, overrides: list[str]) -> np.ndarray:
  batch, length = ids.shape
  config = pyconfig.initialize(["", configuration, f"load_parameters_path={items}", *EXACT, f"per_device_batch_size={batch}",
                                f"max_target_length={length}", f"max_prefill_predict_length={max(length // 2, 1)}", *overrides])
  mesh = jax.sharding.Mesh(maxtext_utils.create_device_mesh(config), config.mesh_axes)
  model = model_creation_utils.from_pretrained(config, mesh=mesh, model_mode=MODEL_MODE_TRAIN)
  model = model[0] if isinstance(model, tuple) else model
  positions = np.broadcast_to(np.arange(length, dtype=np.int32), ids.shape)
  segments = np.full(ids.shape, DECODING_ACTIVE_SEQUENCE_INDICATOR, np.int32)
  with mesh:
    logits = model(ids, positions, decoder_segment_ids=segments, enable_dropout=False)
  return np.asarray(logits[0] if isinstance(logits, tuple) else logits, np.float32)


def log_softmax(x: np.ndarray) -> np.ndarray:
  shifted = x - x.max(-1, keepdims=True)
  return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def compare(got: np.ndarray, want: np.ndarray) -> dict:
  got = got[..., : want.shape[-1]].astype(np.float64)
  want = want.astype(np.float64)
  divergence = (np.exp(log_softmax(want)) * (log_softmax(want) - log_softmax(got))).sum(-1)
  return {"max_abs_diff": float(np.abs(got - want).max()), "scale": float(np.abs(want).max()),
          "cosine": float((got * want).sum() / np.sqrt((got**2).sum() * (want**2).sum())),
          "argmax_agreement": float((got.argmax(-1) == want.argmax(-1)).mean()), "max_kl_divergence": float(divergence.max())}


def main() -> None:
  items, reference, *rest = sys.argv[1:]
  items = os.path.abspath(items)  # MaxText takes a relative path for a missing checkpoint
  configuration = str(pathlib.Path(maxtext.__file__).parent / "configs" / "base.yml")
  if rest and rest[0].endswith(".yml"):
    configuration, *rest = rest
  file = safetensors.numpy.load_file(reference)
  got = forward(items, file["input_ids"].astype(np.int32), configuration, rest)
  print(json.dumps(compare(got, file["logits"])))


if __name__ == "__main__":
  main()
