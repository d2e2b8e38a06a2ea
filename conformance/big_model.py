"""Writes a Llama checkpoint of any size for measuring: Hugging Face layout, synthetic weights, NumPy alone.

usage: big_model.py FOLDER [--layers N] [--hidden N] [--mlp N] [--heads N] [--kv_heads N] [--vocab N]
                           [--shard_bytes N] [--dtype bfloat16|float16|float32]

The defaults give 2.1 GB in bfloat16. Values are drawn from a pool of normally distributed ones (deviation 0.02), from
another place of it for each tensor: they compress like trained weights and cost no time to make.
"""
import argparse
import json
import pathlib

import ml_dtypes
import numpy as np

CODES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
POOL_ELEMENTS = 1 << 24


def tensor_shapes(config: dict) -> dict[str, tuple[int, ...]]:
  """Names and shapes in the order in which published files have them: embedding, layers, norm, head."""
  hidden, mlp, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
  query = config["num_attention_heads"] * config["head_dim"]
  key = config["num_key_value_heads"] * config["head_dim"]
  layer = {"self_attn.q_proj": (query, hidden), "self_attn.k_proj": (key, hidden), "self_attn.v_proj": (key, hidden),
           "self_attn.o_proj": (hidden, query), "mlp.gate_proj": (mlp, hidden), "mlp.up_proj": (mlp, hidden),
           "mlp.down_proj": (hidden, mlp), "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,)}
  shapes = {"model.embed_tokens.weight": (vocab, hidden)}
  for n in range(config["num_hidden_layers"]):
    shapes |= {f"model.layers.{n}.{name}.weight": shape for name, shape in layer.items()}
  return shapes | {"model.norm.weight": (hidden,), "lm_head.weight": (vocab, hidden)}


def split(shapes: dict, item_size: int, shard_bytes: int) -> list[list[str]]:
  """Names grouped into files of at most about `shard_bytes`."""
  shards, filled = [[]], 0
  for name, shape in shapes.items():
    size = int(np.prod(shape)) * item_size
    if shards[-1] and filled + size > shard_bytes:
      shards.append([])
      filled = 0
    shards[-1].append(name)
    filled += size
  return shards


class Pool:
  """An endless supply of plausible weights."""

  def __init__(self, dtype: str):
    self.rng = np.random.default_rng(0)
    values = self.rng.standard_normal(POOL_ELEMENTS, dtype=np.float32) * np.float32(0.02)
    self.values = memoryview(values.astype(getattr(ml_dtypes, dtype, dtype)).view(np.uint8))
    self.item_size = len(self.values) // POOL_ELEMENTS

  def write(self, file, elements: int) -> None:
    start = int(self.rng.integers(POOL_ELEMENTS)) * self.item_size
    left = elements * self.item_size
    while left:
      part = self.values[start : start + left]
      file.write(part)
      left -= len(part)
      start = 0


def write_model(folder: pathlib.Path, config: dict, dtype: str = "bfloat16", shard_bytes: int = 10**9) -> int:
  """Writes the whole folder and returns the bytes of its weights."""
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "config.json").write_text(json.dumps(config, indent=2))
  pool, shapes = Pool(dtype), tensor_shapes(config)
  shards = split(shapes, pool.item_size, shard_bytes)
  weight_map, total = {}, 0
  for number, names in enumerate(shards, 1):
    file_name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name in names:
      end = offset + int(np.prod(shapes[name])) * pool.item_size
      header[name] = {"dtype": CODES[dtype], "shape": shapes[name], "data_offsets": [offset, end]}
      weight_map[name], offset = file_name, end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / file_name, "wb", buffering=1 << 20) as file:
      file.write(len(text).to_bytes(8, "little") + text)
      for name in names:
        pool.write(file, int(np.prod(shapes[name])))
    total += offset
  index = {"metadata": {"total_size": total}, "weight_map": weight_map}
  (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=1))
  return total


def llama_config(layers: int = 22, hidden: int = 2048, mlp: int = 5632, heads: int = 32, kv_heads: int = 8, vocab: int = 32000,
                 dtype: str = "bfloat16") -> dict:
  return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "intermediate_size": mlp,
          "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": hidden // heads,
          "vocab_size": vocab, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": dtype,
          "max_position_embeddings": 2048, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("folder", type=pathlib.Path)
  for name, default in dict(layers=22, hidden=2048, mlp=5632, heads=32, kv_heads=8, vocab=32000).items():
    parser.add_argument(f"--{name}", type=int, default=default)
  parser.add_argument("--shard_bytes", type=int, default=10**9)
  parser.add_argument("--dtype", choices=CODES, default="bfloat16")
  arguments = vars(parser.parse_args())
  folder, shard_bytes = arguments.pop("folder"), arguments.pop("shard_bytes")
  total = write_model(folder, llama_config(**arguments), arguments["dtype"], shard_bytes)
  print(f"{folder}: {total / 1e9:.2f} GB")


if __name__ == "__main__":
  main()
