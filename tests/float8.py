"""A small Qwen3.5 in the float8 form of its published files: kernels in float8_e4m3fn, each square block with a scale."""
import json
import pathlib
import re

import ml_dtypes
import numpy as np

import support

SOURCE = support.GOLDENS / "qwen3.5-35b-a3b"
BLOCK = 8
LARGEST = 448.0  # of float8_e4m3fn
QUANTIZED = re.compile(r"model\.language_model\.layers\.\d+\.("
                       r"self_attn\.[qkvo]_proj|linear_attn\.(in_proj_qkv|in_proj_z|out_proj)|"
                       r"mlp\.shared_expert\.(gate|up|down)_proj|mlp\.experts\.\d+\.(gate|up|down)_proj)\.weight")


def quantized(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """[rows, columns] as float8 of the same shape and bfloat16 [rows/8, columns/8] factors to multiply with."""
  rows, columns = (size // BLOCK for size in weight.shape)
  blocks = weight.astype(np.float32).reshape(rows, BLOCK, columns, BLOCK)
  scale = (np.abs(blocks).max(axis=(1, 3)) / LARGEST).astype(ml_dtypes.bfloat16)
  small = blocks / scale.astype(np.float32)[:, None, :, None]
  return small.reshape(weight.shape).astype(ml_dtypes.float8_e4m3fn), scale


def single_experts(tensors: dict) -> dict:
  """The joined expert tensors of transformers 5 as the published files have them, one by one."""
  out = {}
  for name, array in tensors.items():
    stem, _, kind = name.rpartition(".")
    if not stem.endswith(".mlp.experts"):
      out[name] = array
      continue
    for expert, matrix in enumerate(array):
      parts = zip(["gate_proj", "up_proj"], np.split(matrix, 2)) if kind == "gate_up_proj" else [("down_proj", matrix)]
      out.update({f"{stem}.{expert}.{part}.weight": np.ascontiguousarray(half) for part, half in parts})
  return out


def write_model(folder: pathlib.Path) -> pathlib.Path:
  folder.mkdir(parents=True)
  config = json.loads((SOURCE / "hf" / "config.json").read_text())
  config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                                   "weight_block_size": [BLOCK, BLOCK], "modules_to_not_convert": ["lm_head"]}
  (folder / "config.json").write_text(json.dumps(config, indent=1))
  tensors = {}
  for name, array in single_experts(support.load_tensors(SOURCE / "hf")).items():
    tensors[name] = array
    if QUANTIZED.fullmatch(name):
      tensors[name], tensors[name + "_scale_inv"] = quantized(array)
  support.save_tensors(folder / "model.safetensors", tensors, {"format": "pt"})
  return folder
