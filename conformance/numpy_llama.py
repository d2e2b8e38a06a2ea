"""The Llama family written a second time, in NumPy, from its definition: what each MaxText leaf must hold, and what the
model computes from those leaves. It shares nothing with the program, so that a mistake there cannot hide here.

MaxText keeps kernels as (in, out...), folds head_dim ** -0.5 into the query and puts the two elements (j, j + half) that
a rotary angle turns side by side, as (2j, 2j + 1).
"""
import ml_dtypes
import numpy as np

ROOT = "params.params."


def head_dimension(config: dict) -> int:
  return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def layer_leaves(tensors: dict[str, np.ndarray], config: dict, number: int, dtype) -> dict[str, np.ndarray]:
  """The leaves of one layer, by their names within it."""
  heads, head_dim = config["num_attention_heads"], head_dimension(config)
  kv_heads = config.get("num_key_value_heads") or heads
  scale = np.float32(1 / np.sqrt(float(head_dim)))

  def source(name):
    return tensors[f"model.layers.{number}.{name}.weight"].astype(dtype)

  def projection(name, count):
    return source(name).T.reshape(-1, count, head_dim)

  def rotary_pairs(kernel):
    return np.stack(np.split(kernel, 2, axis=-1), axis=-1).reshape(kernel.shape)

  query = rotary_pairs(projection("self_attn.q_proj", heads))
  return {
      "self_attention.query.kernel": (query.astype(np.float32) * scale).astype(dtype),
      "self_attention.key.kernel": rotary_pairs(projection("self_attn.k_proj", kv_heads)),
      "self_attention.value.kernel": projection("self_attn.v_proj", kv_heads),
      "self_attention.out.kernel": source("self_attn.o_proj").T.reshape(heads, head_dim, -1),
      "mlp.wi_0.kernel": source("mlp.gate_proj").T,
      "mlp.wi_1.kernel": source("mlp.up_proj").T,
      "mlp.wo.kernel": source("mlp.down_proj").T,
      "pre_self_attention_layer_norm.scale": source("input_layernorm"),
      "post_self_attention_layer_norm.scale": source("post_attention_layernorm"),
  }


def leaves(tensors: dict[str, np.ndarray], config: dict, scan: bool, dtype=ml_dtypes.bfloat16, scan_axis: int = 1) -> dict[str, np.ndarray]:
  """Every parameter of the MaxText checkpoint, by dotted path, from the tensors of the Hugging Face one."""
  found = {ROOT + "token_embedder.embedding": tensors["model.embed_tokens.weight"].astype(dtype),
           ROOT + "decoder.decoder_norm.scale": tensors["model.norm.weight"].astype(dtype)}
  if not config.get("tie_word_embeddings"):
    found[ROOT + "decoder.logits_dense.kernel"] = tensors["lm_head.weight"].astype(dtype).T
  layers = [layer_leaves(tensors, config, n, dtype) for n in range(config["num_hidden_layers"])]
  for name in layers[0]:
    if scan:
      found[f"{ROOT}decoder.layers.{name}"] = np.stack([layer[name] for layer in layers], axis=scan_axis)
    else:
      found |= {f"{ROOT}decoder.layers_{n}.{name}": layer[name] for n, layer in enumerate(layers)}
  return found


class Forward:
  """The forward pass over scanned leaves (layers on axis 1), in float32."""

  def __init__(self, leaves: dict[str, np.ndarray], config: dict):
    self.config = config
    params = {name.removeprefix(ROOT): np.asarray(leaf, np.float32) for name, leaf in leaves.items() if name.startswith(ROOT)}
    self.embedding = params["token_embedder.embedding"]
    self.head = params.get("decoder.logits_dense.kernel", self.embedding.T)
    self.last_norm = params["decoder.decoder_norm.scale"]
    prefix = "decoder.layers."
    self.layers = [{name.removeprefix(prefix): np.ascontiguousarray(leaf[:, n]) for name, leaf in params.items() if name.startswith(prefix)}
                   for n in range(config["num_hidden_layers"])]

  def norm(self, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + np.float32(self.config["rms_norm_eps"])) * scale

  def rotate(self, x: np.ndarray) -> np.ndarray:
    """x: (heads, positions, head_dim), pairs side by side."""
    positions, head_dim = x.shape[1:]
    frequencies = self.config["rope_theta"] ** (-np.arange(0, head_dim, 2) / head_dim)
    angles = np.arange(positions)[:, None] * frequencies
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, odd * cos + even * sin], -1).reshape(x.shape)

  def attention(self, x: np.ndarray, layer: dict) -> np.ndarray:
    def heads(name):
      kernel = layer[f"self_attention.{name}.kernel"]
      return (x @ kernel.reshape(kernel.shape[0], -1)).reshape(len(x), *kernel.shape[1:]).swapaxes(0, 1)

    query, key, value = self.rotate(heads("query")), self.rotate(heads("key")), heads("value")
    group = len(query) // len(key)
    scores = query @ np.repeat(key, group, 0).swapaxes(1, 2)
    scores += np.triu(np.full(scores.shape[1:], -np.inf, np.float32), 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = (weights @ np.repeat(value, group, 0)).swapaxes(0, 1).reshape(len(x), -1)
    out = layer["self_attention.out.kernel"]
    return mixed @ out.reshape(-1, out.shape[-1])

  def feed_forward(self, x: np.ndarray, layer: dict) -> np.ndarray:
    gate = x @ layer["mlp.wi_0.kernel"]
    return (gate / (1 + np.exp(-gate)) * (x @ layer["mlp.wi_1.kernel"])) @ layer["mlp.wo.kernel"]

  def hidden(self, ids: list[int]) -> np.ndarray:
    x = self.embedding[ids]
    for layer in self.layers:
      x = x + self.attention(self.norm(x, layer["pre_self_attention_layer_norm.scale"]), layer)
      x = x + self.feed_forward(self.norm(x, layer["post_self_attention_layer_norm.scale"]), layer)
    return self.norm(x, self.last_norm)

  def logits(self, ids: list[int]) -> np.ndarray:
    """Logits of every position, (positions, vocabulary)."""
    return self.hidden(ids) @ self.head

  def continue_greedily(self, ids: list[int], count: int) -> list[int]:
    ids = list(ids)
    for _ in range(count):
      ids.append(int((self.hidden(ids)[-1] @ self.head).argmax()))
    return ids
