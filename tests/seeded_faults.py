"""Mistakes that a converter's parameter map can make, each as a change of the tensors that it is given: converting the
changed model rightly gives what converting the model wrongly would have given.

A fault takes {name: float32 array} and the language model's configuration and returns the changed tensors; a name that it
does not find changes nothing."""
import re
from typing import Callable

import numpy as np

Tensors = dict[str, np.ndarray]
FAULTS: dict[str, Callable[[Tensors, dict], Tensors]] = {}


def fault(function):
  FAULTS[function.__name__] = function
  return function


def text_config(config: dict) -> dict:
  for key in ("thinker_config", "text_config"):
    config = config.get(key, config)
  return config


def is_language(name: str) -> bool:
  return not re.search(r"visual|vision|audio|multi_modal", name)


def changed(tensors: Tensors, pattern: str, change) -> Tensors:
  """`change` applied to all whose name ends with the pattern."""
  return {n: change(a) if is_language(n) and re.search(pattern + "$", n) else a for n, a in tensors.items()}


def swapped(tensors: Tensors, one: str, other: str) -> Tensors:
  """The tensors of two kinds in each other's places, where their shapes allow it."""
  out = dict(tensors)
  for name in tensors:
    partner = re.sub(one + "$", other, name)
    if partner != name and is_language(name) and tensors.get(partner, np.zeros(0)).shape == tensors[name].shape:
      out[name], out[partner] = tensors[partner], tensors[name]
  return out


def layer(name: str) -> int | None:
  found = re.search(r"layers\.(\d+)\.", name)
  return int(found.group(1)) if found and is_language(name) else None


def rows_by_head(array: np.ndarray, heads: int, change) -> np.ndarray:
  """`change` applied to [heads, dim, ...]."""
  if array.shape[0] % heads:
    return array
  return change(array.reshape(heads, -1, *array.shape[1:])).reshape(array.shape)


def heads_of(config: dict) -> int:
  return config["num_attention_heads"]


def key_heads_of(config: dict) -> int:
  return config.get("num_key_value_heads") or config["num_attention_heads"]


QUERY = r"self_attn\.(q_proj|q_b_proj)\.weight"
KEY = r"self_attn\.k_proj\.weight"
GATE_UP = r"experts\.gate_up_proj"


@fault
def gate_and_up_swapped(t, config):
  t = swapped(t, r"mlp\.gate_proj\.weight", "mlp.up_proj.weight")
  t = swapped(t, r"\.w1\.weight", ".w3.weight")
  for kind in ("experts", "shared_expert", "shared_experts"):
    t = swapped_within(t, kind)
  if config.get("model_type") == "gpt_oss":  # gate and up alternate
    return changed(t, GATE_UP + "(_bias)?", lambda a: a.reshape(*a.shape[:-1], -1, 2)[..., ::-1].reshape(a.shape))
  return changed(t, GATE_UP, lambda a: np.concatenate(np.split(a, 2, axis=1)[::-1], axis=1))


def swapped_within(t: Tensors, kind: str) -> Tensors:
  out = dict(t)
  for name in t:
    if re.search(rf"\.{kind}\.(\d+\.)?gate_proj\.weight$", name):
      partner = name.replace("gate_proj", "up_proj")
      out[name], out[partner] = t[partner], t[name]
  return out


@fault
def query_and_key_swapped(t, config):
  """Where they differ in size, the keys stand in for the first heads of the queries, and the other way round."""
  out = dict(t)
  for name in t:
    if is_language(name) and re.search(r"self_attn\.q_proj\.weight$", name) and (partner := name.replace("q_proj", "k_proj")) in t:
      rows = min(len(t[name]), len(t[partner]))
      out[name], out[partner] = t[name].copy(), t[partner].copy()
      out[name][:rows], out[partner][:rows] = t[partner][:rows], t[name][:rows]
  return out


@fault
def key_and_value_swapped(t, _):
  return swapped(t, r"k_proj\.weight", "v_proj.weight")


@fault
def heads_split_the_wrong_way(t, config):
  """[dim, heads] instead of [heads, dim]."""
  return changed(t, QUERY, lambda a: rows_by_head(a, heads_of(config), lambda x: x.swapaxes(0, 1)))


@fault
def output_kernel_transposed(t, _):
  return changed(t, r"(self_attn\.o_proj|linear_attn\.out_proj)\.weight", lambda a: a.T.reshape(a.shape))


@fault
def down_kernel_transposed(t, _):
  t = changed(t, r"experts\.down_proj", lambda a: a.swapaxes(-1, -2).reshape(a.shape))
  return changed(t, r"(down_proj|\.w2)\.weight", lambda a: a.T.reshape(a.shape))


@fault
def rotary_order_of_the_other_kind(t, config):
  """Halves where pairs are meant, or pairs where halves are."""
  def interleave(x):
    return x.reshape(x.shape[0], 2, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)

  t = changed(t, QUERY, lambda a: rows_by_head(a, heads_of(config), interleave))
  if "kv_lora_rank" in config:  # only the queries: the same order of both would be no fault
    return t
  return changed(t, KEY, lambda a: rows_by_head(a, key_heads_of(config), lambda x: x[:, ::-1]))


@fault
def query_scale_missing(t, config):
  """What scales the query: its norm where it has one, which would undo a factor in the kernel."""
  normed = any(re.search(r"q_norm\.weight$", n) for n in t)
  pattern = r"self_attn\.q_norm\.weight" if normed else QUERY
  return changed(t, pattern, lambda a: a * np.float32(config.get("head_dim", 16) ** 0.5))


@fault
def norms_off_by_one(t, _):
  return changed(t, r"layernorm\.weight", lambda a: a + 1)


@fault
def final_norm_dropped(t, _):
  return changed(t, r"(model|language_model)\.norm\.weight", np.ones_like)


@fault
def norms_swapped(t, _):
  for one, other in (("input_layernorm", "post_attention_layernorm"), ("post_feedforward_layernorm", "post_attention_layernorm")):
    result = swapped(t, one + r"\.weight", other + ".weight")
    if any(result[n] is not t[n] for n in t):
      return result
  return t


@fault
def query_and_key_norms_swapped(t, _):
  return swapped(t, r"q_norm\.weight", "k_norm.weight")


@fault
def experts_permuted(t, _):
  t = changed(t, r"experts\.(gate_up|down)_proj(_bias)?", lambda a: np.roll(a, 1, axis=0))
  count = 1 + max((int(m.group(1)) for n in t if (m := re.search(r"experts\.(\d+)\.", n)) and is_language(n)), default=-1)
  if count == 0:
    return t
  return {re.sub(r"experts\.(\d+)\.", lambda m: f"experts.{(int(m.group(1)) + 1) % count}.", n) if is_language(n) else n: a
          for n, a in t.items()}


@fault
def an_expert_repeated(t, _):
  """The last one is the first again."""
  t = changed(t, r"experts\.(gate_up|down)_proj", lambda a: np.concatenate([a[:-1], a[:1]]))
  count = 1 + max((int(m.group(1)) for n in t if (m := re.search(r"experts\.(\d+)\.", n)) and is_language(n)), default=-1)
  return {n: t[re.sub(r"experts\.\d+\.", "experts.0.", n)] if is_language(n) and f"experts.{count - 1}." in n else a for n, a in t.items()}


@fault
def router_permuted(t, _):
  return changed(t, r"(mlp\.gate|block_sparse_moe\.gate|router|router\.proj)\.weight", lambda a: np.roll(a, 1, axis=0))


@fault
def router_bias_dropped(t, _):
  return changed(t, r"(e_score_correction_bias|router\.bias|router\.per_expert_scale)", np.zeros_like)


@fault
def shared_expert_dropped(t, _):
  return changed(t, r"shared_experts?\.down_proj\.weight", np.zeros_like)


@fault
def layers_permuted(t, _):
  """The first two layers that have the same tensors."""
  groups = {}
  for name, array in t.items():
    if (n := layer(name)) is not None:
      groups.setdefault(n, set()).add((name.split(f"layers.{n}.")[1], array.shape))
  for a in sorted(groups):
    for b in sorted(groups):
      if a < b and groups[a] == groups[b]:
        place = {a: b, b: a}
        return {re.sub(r"layers\.\d+\.", f"layers.{place[n]}.", name) if (n := layer(name)) in place else name: array
                for name, array in t.items()}
  return t


@fault
def a_layer_repeated(t, _):
  """A layer holds the feed-forward part of the one before it."""
  out = dict(t)
  for name in t:
    if (n := layer(name)) is not None and n > 0 and re.search(r"(down_proj|w2)\.weight$|experts\.down_proj$", name):
      before = name.replace(f"layers.{n}.", f"layers.{n - 1}.")
      if before in t and t[before].shape == t[name].shape:
        out[name] = t[before]
  return out


@fault
def biases_dropped(t, _):
  return changed(t, r"(\.bias|_bias)", np.zeros_like)


@fault
def vocabulary_off_by_one(t, _):
  return changed(t, r"embed_tokens\.weight", lambda a: np.roll(a, 1, axis=0))


@fault
def head_off_by_one(t, _):
  return changed(t, r"lm_head\.weight", lambda a: np.roll(a, 1, axis=0))


@fault
def query_heads_permuted(t, config):
  return changed(t, QUERY, lambda a: rows_by_head(a, heads_of(config), lambda x: np.roll(x, 1, axis=0)))


@fault
def key_heads_permuted(t, config):
  return changed(t, r"self_attn\.(k_proj|v_proj|kv_b_proj)\.weight",
                 lambda a: rows_by_head(a, key_heads_of(config), lambda x: np.roll(x, 1, axis=0)))


@fault
def attention_sinks_dropped(t, _):
  return changed(t, r"self_attn\.sinks", lambda a: np.full_like(a, -30))


@fault
def latent_and_rotary_rows_swapped(t, config):
  return changed(t, r"kv_a_proj_with_mqa\.weight", lambda a: np.roll(a, config.get("qk_rope_head_dim", 0), axis=0))


@fault
def key_and_value_parts_swapped(t, config):
  """Of the decompression of DeepSeek's latent vectors."""
  def roll(x):
    return np.roll(x, config["v_head_dim"], axis=1)

  return changed(t, r"kv_b_proj\.weight", lambda a: rows_by_head(a, heads_of(config), roll))


@fault
def convolution_reversed(t, _):
  return changed(t, r"conv1d\.weight", lambda a: a[..., ::-1].copy())


@fault
def decay_dropped(t, _):
  return changed(t, r"linear_attn\.(A_log|dt_bias)", np.zeros_like)


@fault
def projections_of_linear_attention_in_another_order(t, _):
  return changed(t, r"linear_attn\.in_proj_(qkvz|qkv|ba|z)\.weight", lambda a: np.roll(a, len(a) // 2, axis=0))


@fault
def layer_scalar_dropped(t, _):
  return changed(t, r"layer_scalar", lambda a: np.ones_like(a) * 2)


@fault
def inputs_of_the_layers_permuted(t, _):
  """Gemma 4's embeddings for each layer."""
  return changed(t, r"embed_tokens_per_layer\.weight", lambda a: np.roll(a, a.shape[1] // 2, axis=1))
