"""Forwards a checkpoint through MaxText in float32 and writes the logits.

usage: maxtext_logits.py MODEL ITEMS LOGITS.safetensors OUT.npy [key=value ...]

LOGITS.safetensors holds input_ids; OUT.npy receives float32 logits of the same batch.
"""

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
from maxtext.common.common_types import DECODING_ACTIVE_SEQUENCE_INDICATOR, MODEL_MODE_TRAIN
from maxtext.configs import pyconfig
from maxtext.utils import maxtext_utils, model_creation_utils
from safetensors.numpy import load_file


def main() -> None:
  model_name, items, logits, out, *rest = sys.argv[1:]
  ids = load_file(logits)["input_ids"].astype(np.int32)
  batch, length = ids.shape
  base = pathlib.Path(maxtext.__file__).parent / "configs" / "base.yml"
  config = pyconfig.initialize([
      "logits", str(base), f"model_name={model_name}", f"load_parameters_path={items}", "override_model_config=true",
      "hardware=cpu", "skip_jax_distributed_system=true", "run_name=r", "log_config=false", "attention=dot_product",
      "dtype=float32", "weight_dtype=float32", f"per_device_batch_size={batch}", f"max_target_length={length}",
      f"max_prefill_predict_length={length // 2}", "matmul_precision=highest", "float32_logits=true",
      "float32_qk_product=true", "enable_dropout=false", *rest
  ])
  mesh = jax.sharding.Mesh(maxtext_utils.create_device_mesh(config), config.mesh_axes)
  model = model_creation_utils.from_pretrained(config, mesh=mesh, model_mode=MODEL_MODE_TRAIN)
  if isinstance(model, tuple):
    model = model[0]
  positions = np.stack([np.arange(length, dtype=np.int32)] * batch)
  segments = np.full((batch, length), DECODING_ACTIVE_SEQUENCE_INDICATOR, np.int32)
  with mesh:
    found = model(ids, positions, decoder_segment_ids=segments, enable_dropout=False)
  if isinstance(found, tuple):
    found = found[0]
  np.save(out, np.asarray(found, np.float32))


if __name__ == "__main__":
  main()
