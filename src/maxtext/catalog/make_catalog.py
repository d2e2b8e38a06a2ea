"""Writes one JSON file a model name from an installed MaxText, plus names.txt with their order.

    python make_catalog.py --maxtext SITE_PACKAGES/maxtext --out .

Runs in an environment that has transformers and PyYAML. Takes MaxText's Hugging Face configurations as transformers
prints them, drops what says nothing about the model, applies the corrections below (each with its reason; README.md
lists them too) and adds the settings of the model file.
"""

import argparse
import importlib.util
import json
import os

import yaml

# Fields that every transformers configuration has and that say nothing about a model.
NOISE = {
    "transformers_version", "output_hidden_states", "return_dict", "chunk_size_feed_forward", "is_encoder_decoder",
    "id2label", "label2id", "problem_type", "_name_or_path", "output_attentions", "pretraining_tp", "auto_map",
    "cache_implementation", "_sliding_window_pattern", "ep_size", "seq_aux", "aux_loss_alpha", "qkv_bias",
    "output_router_logits", "expert_dtype",
}
# Here a null says something: the class of transformers has another default.
TELLING_NULLS = {"sliding_window", "q_lora_rank", "num_experts", "audio_config"}

# name: (family, hf_id), in the order of the supported-model table. A third member names the entry whose
# configuration and settings this one shares; a fourth the model file, where that has another name.
MODELS = {
    "llama3.1-8b": ("llama", "meta-llama/Llama-3.1-8B"),
    "llama3.1-8b-Instruct": ("llama", "meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8b"),
    "llama3.1-70b": ("llama", "meta-llama/Llama-3.1-70B"),
    "llama3.1-70b-Instruct": ("llama", "meta-llama/Llama-3.1-70B-Instruct", "llama3.1-70b"),
    "llama3.1-405b": ("llama", "meta-llama/Llama-3.1-405B"),
    "mistral-7b": ("mistral", "mistralai/Mistral-7B-v0.1"),
    "mixtral-8x7b": ("mixtral", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
    "mixtral-8x22b": ("mixtral", "mistralai/Mixtral-8x22B-Instruct-v0.1"),
    "qwen2.5-1.5b": ("qwen2.5", "Qwen/Qwen2.5-1.5B-Instruct"),
    "qwen2.5-7b": ("qwen2.5", "Qwen/Qwen2.5-7B-Instruct"),
    "qwen2.5-14b": ("qwen2.5", "Qwen/Qwen2.5-14B-Instruct"),
    "qwen3-0.6b": ("qwen3", "Qwen/Qwen3-0.6B"),
    "qwen3-1.7b": ("qwen3", "Qwen/Qwen3-1.7B"),
    "qwen3-1.7b-base": ("qwen3", "Qwen/Qwen3-1.7B-Base"),
    "qwen3-4b": ("qwen3", "Qwen/Qwen3-4B"),
    "qwen3-4b-base": ("qwen3", "Qwen/Qwen3-4B-Base"),
    "qwen3-4b-thinking-2507": ("qwen3", "Qwen/Qwen3-4B-Thinking-2507"),
    "qwen3-8b": ("qwen3", "Qwen/Qwen3-8B"),
    "qwen3-8b-base": ("qwen3", "Qwen/Qwen3-8B-Base"),
    "qwen3-14b": ("qwen3", "Qwen/Qwen3-14B"),
    "qwen3-14b-base": ("qwen3", "Qwen/Qwen3-14B-Base"),
    "qwen3-32b": ("qwen3", "Qwen/Qwen3-32B"),
    "qwen3-30b-a3b": ("qwen3-moe", "Qwen/Qwen3-30B-A3B-Thinking-2507"),
    "qwen3-30b-a3b-base": ("qwen3-moe", "Qwen/Qwen3-30B-A3B-Base"),
    "qwen3-235b-a22b": ("qwen3-moe", "Qwen/Qwen3-235B-A22B-Thinking-2507"),
    "qwen3-480b-a35b": ("qwen3-moe", "Qwen/Qwen3-Coder-480B-A35B-Instruct"),
    "qwen3-coder-480b-a35b": ("qwen3-moe", "Qwen/Qwen3-Coder-480B-A35B-Instruct", "qwen3-480b-a35b"),
    "qwen3-next-80b-a3b": ("qwen3-next", "Qwen/Qwen3-Next-80B-A3B-Instruct"),
    "qwen3.5-35b-a3b": ("qwen3.5", "Qwen/Qwen3.5-35B-A3B"),
    "qwen3.5-35b-a3b-fp8": ("qwen3.5", "Qwen/Qwen3.5-35B-A3B-FP8"),
    "qwen3.5-35b-fp8": ("qwen3.5", "Qwen/Qwen3.5-35B-A3B-FP8", "qwen3.5-35b-a3b-fp8"),
    "qwen3.5-397b-a17b": ("qwen3.5", "Qwen/Qwen3.5-397B-A17B"),
    "qwen3.5-397b-a17b-fp8": ("qwen3.5", "Qwen/Qwen3.5-397B-A17B-FP8"),
    "qwen3-vl-2b": ("qwen3-vl", "Qwen/Qwen3-VL-2B-Instruct"),
    "qwen3-vl-4b": ("qwen3-vl", "Qwen/Qwen3-VL-4B-Instruct"),
    "qwen3-vl-30b-a3b": ("qwen3-vl", "Qwen/Qwen3-VL-30B-A3B-Instruct"),
    "qwen3-omni-30b-a3b": ("qwen3-omni", "Qwen/Qwen3-Omni-30B-A3B-Instruct"),
    "weaver-mini": ("weaver", "Qwen/Qwen3-VL-4B-Instruct"),
    "weaver-max": ("weaver", "Qwen/Qwen3-VL-8B-Instruct"),
    "gemma2-2b": ("gemma2", "google/gemma-2-2b"),
    "gemma2-9b": ("gemma2", "google/gemma-2-9b"),
    "gemma2-27b": ("gemma2", "google/gemma-2-27b"),
    "gemma3-4b": ("gemma3", "google/gemma-3-4b-it"),
    "gemma3-12b": ("gemma3", "google/gemma-3-12b-it"),
    "gemma3-27b": ("gemma3", "google/gemma-3-27b-it"),
    "gemma4-26b": ("gemma4", "google/gemma-4-26b-a4b-it"),
    "gemma4-31b": ("gemma4", "google/gemma-4-31b-it"),
    "gemma4-e2b": ("gemma4-small", "google/gemma-4-E2B-it"),
    "gemma4-e4b": ("gemma4-small", "google/gemma-4-E4B-it"),
    "gpt-oss-20b": ("gpt-oss", "unsloth/gpt-oss-20b-BF16"),
    "gpt-oss-120b": ("gpt-oss", "unsloth/gpt-oss-120b-BF16"),
    "deepseek2-16b": ("deepseek2", "deepseek-ai/DeepSeek-V2-Lite"),
    "deepseek3-671b": ("deepseek3", "deepseek-ai/DeepSeek-V3"),
    "deepseek3.2-671b": ("deepseek3.2", "deepseek-ai/DeepSeek-V3.2"),
    "deepseek4-284b": ("deepseek4", "deepseek-ai/DeepSeek-V4-Flash"),
    "deepseek4-tiny": ("deepseek4", ""),
    "olmo3-7b": ("olmo3", "allenai/Olmo-3-7B-Instruct"),
    "olmo3-7b-pt": ("olmo3", "allenai/Olmo-3-1025-7B"),
    "olmo3-32b": ("olmo3", "allenai/Olmo-3-32B-Think"),
}

ARCHITECTURES = {
    "llama": "LlamaForCausalLM", "qwen2.5": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM",
    "gemma2": "Gemma2ForCausalLM", "mistral": "MistralForCausalLM",
}
LLAMA3_ROPE = {
    "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
    "rope_theta": 500000.0, "rope_type": "llama3",
}
OLMO3_YARN = {
    "full_attention": {
        "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0,
        "original_max_position_embeddings": 8192, "rope_theta": 500000.0, "rope_type": "yarn",
    },
    "sliding_attention": {"rope_theta": 500000.0, "rope_type": "default"},
}
GEMMA3 = {
    "text_config.hidden_activation": "gelu_pytorch_tanh",
    "text_config.max_position_embeddings": 131072,
    "text_config.rope_parameters.full_attention.rope_theta": 1000000.0,
}
FP8 = {"quantization_config": {
    "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}}

# name: {dotted field: value}; a value of DROP removes it.
DROP = object()
CORRECTIONS = {
    # The table has no rope scaling and the class's default base.
    "llama3.1-405b": {"rope_parameters": LLAMA3_ROPE},
    # The table reuses qwen3-4b, which has another base and a shorter context; the base models a shorter one still.
    "qwen3-4b-thinking-2507": {"rope_parameters.rope_theta": 5000000.0, "max_position_embeddings": 262144},
    "qwen3-1.7b-base": {"max_position_embeddings": 32768},
    "qwen3-4b-base": {"max_position_embeddings": 32768},
    "qwen3-8b-base": {"max_position_embeddings": 32768},
    "qwen3-14b-base": {"max_position_embeddings": 32768},
    # The table lets the class's defaults stand where the published thinker has other values. The talker and the
    # vocoder have no counterpart in MaxText.
    "qwen3-omni-30b-a3b": {
        "enable_audio_output": False, "talker_config": DROP, "code2wav_config": DROP,
        "thinker_config.text_config.vocab_size": 152064,
        "thinker_config.text_config.num_attention_heads": 32,
        "thinker_config.text_config.head_dim": 128,
        "thinker_config.text_config.intermediate_size": 768,
        "thinker_config.text_config.max_position_embeddings": 65536,
        "thinker_config.text_config.rope_parameters.mrope_interleaved": True,
        "thinker_config.text_config.rope_parameters.mrope_section": [24, 20, 20],
        "thinker_config.vision_config.out_hidden_size": 2048,
        "thinker_config.audio_config.output_dim": 2048,
        "thinker_config.position_id_per_seconds": 13,
    },
    # Two tie flags in one configuration; the files hold a head of their own.
    "qwen3-vl-30b-a3b": {"text_config.tie_word_embeddings": False},
    "weaver-mini": {"text_config.tie_word_embeddings": False},
    "gemma3-4b": GEMMA3, "gemma3-12b": GEMMA3, "gemma3-27b": GEMMA3,
    # Left over from the model that the table copies.
    "gemma4-31b": {"text_config.moe_intermediate_size": DROP},
    # The table has the pre-training configuration for all; these two were published after context extension.
    "olmo3-7b": {"rope_parameters": OLMO3_YARN, "max_position_embeddings": 65536},
    "olmo3-32b": {"rope_parameters": OLMO3_YARN, "max_position_embeddings": 65536},
    "qwen3.5-35b-a3b-fp8": FP8, "qwen3.5-397b-a17b-fp8": FP8,
}
# What transformers moves elsewhere or names anew since release 5.24, put back as published.
GEMMA4_GLOBAL = {
    "gemma4-26b": (512, 2), "gemma4-31b": (512, 4), "gemma4-e2b": (512, None), "gemma4-e4b": (512, None),
}

# Not in MaxText's table.
MISTRAL_7B = {
    "architectures": ["MistralForCausalLM"], "bos_token_id": 1, "dtype": "bfloat16", "eos_token_id": 2,
    "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
    "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "sliding_window": 4096, "tie_word_embeddings": False, "use_cache": True, "vocab_size": 32000,
}
DEEPSEEK4_TINY = {  # the full model's configuration with the sizes of the model file
    "head_dim": 32, "hidden_size": 64, "index_head_dim": 32, "index_n_heads": 4, "index_topk": 16,
    "max_position_embeddings": 4096, "moe_intermediate_size": 64, "n_routed_experts": 16, "num_attention_heads": 4,
    "num_experts_per_tok": 4, "o_groups": 4, "o_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 32,
    "routed_scaling_factor": 1.0, "norm_topk_prob": False, "sliding_window": 32, "quantization_config": DROP,
}


def load_table(maxtext):
  path = os.path.join(maxtext, "checkpoint_conversion", "utils", "hf_model_configs.py")
  spec = importlib.util.spec_from_file_location("hf_model_configs", path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return {name: config.to_dict() for name, config in module.HF_MODEL_CONFIGS.items()}


def reduced(value):
  if isinstance(value, dict):
    out = {k: reduced(v) for k, v in value.items()
           if k not in NOISE and (v is not None or k in TELLING_NULLS)}
    if out.get("rope_parameters", {}).get("rope_type"):
      out["rope_parameters"].pop("type", None)
    if out.get("rope_parameters", {}).get("rope_type") == "axial":
      out["rope_parameters"]["rope_type"] = "default"
    return out
  return value


def correct(config, dotted, value):
  *parents, last = dotted.split(".")
  for key in parents:
    config = config[key]
  if value is DROP:
    config.pop(last, None)
  else:
    config[last] = value


def hf_config(name, family, table):
  if name == "mistral-7b":
    return MISTRAL_7B
  config = reduced(table["deepseek4-284b" if name == "deepseek4-tiny" else name])
  if "architectures" not in config:
    config["architectures"] = [ARCHITECTURES[family]]
  if family == "qwen3-vl":
    config["model_type"] = "qwen3_vl_moe" if "a3b" in name else "qwen3_vl"
  if family == "weaver":
    config["model_type"] = "weaver_omni"
  if name in GEMMA4_GLOBAL:
    text = config["text_config"]
    text.pop("per_layer_config")
    text["global_head_dim"], kv_heads = GEMMA4_GLOBAL[name]
    if kv_heads:
      text["num_global_key_value_heads"] = kv_heads
  changes = DEEPSEEK4_TINY if name == "deepseek4-tiny" else CORRECTIONS.get(name, {})
  for dotted, value in changes.items():
    correct(config, dotted, value)
  config.setdefault("dtype", "bfloat16")
  return config


class Loader(yaml.SafeLoader):
  """YAML whose 1e-6 is a number, as MaxText reads it."""


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", __import__("re").compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?$"),
    list("-+0123456789"))
Loader.yaml_implicit_resolvers = {  # integers before floats
    k: sorted(v, key=lambda pair: pair[0].endswith(":float")) for k, v in Loader.yaml_implicit_resolvers.items()}


def settings(name, maxtext):
  with open(os.path.join(maxtext, "configs", "models", name + ".yml"), encoding="utf-8") as file:
    values = yaml.load(file, Loader)
  values.pop("base_config", None)
  return values


def pretty(value, indent=0):
  """JSON with one member a line, and lists on one line."""
  if not isinstance(value, dict) or not value:
    return json.dumps(value)
  pad = " " * (indent + 1)
  body = ",\n".join(f"{pad}{json.dumps(k)}: {pretty(v, indent + 1)}" for k, v in value.items())
  return "{\n" + body + "\n" + " " * indent + "}"


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--maxtext", required=True)
  parser.add_argument("--out", default=".")
  args = parser.parse_args()
  table = load_table(args.maxtext)
  for name, (family, hf_id, *like) in MODELS.items():
    entry = {"name": name, "family": family, "hf_id": hf_id}
    if like:
      entry["like"] = like[0]
    else:
      entry["hf_config"] = dict(sorted(hf_config(name, family, table).items()))
      entry["settings"] = settings(name, args.maxtext)
    with open(os.path.join(args.out, name + ".json"), "w", encoding="utf-8") as file:
      file.write(pretty(entry) + "\n")
  with open(os.path.join(args.out, "names.txt"), "w", encoding="utf-8") as file:
    file.writelines(f"{name} {family}\n" for name, (family, *_) in MODELS.items())


if __name__ == "__main__":
  main()
