"""Logits of a Hugging Face folder as transformers computes them, in float32.

usage: hf_logits.py FOLDER OUT.safetensors [BATCH LENGTH SEED]

OUT holds `input_ids` (random ones, int32) and `logits`. Needs the environment of requirements/transformers.txt.
"""
import sys

import numpy as np
import safetensors.numpy
import torch
import transformers


def main() -> None:
  folder, out = sys.argv[1:3]
  batch, length, seed = map(int, sys.argv[3:6] or (2, 12, 7))
  model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
  ids = np.random.default_rng(seed).integers(1, model.get_input_embeddings().num_embeddings, (batch, length), dtype=np.int32)
  with torch.inference_mode():
    logits = model(torch.from_numpy(ids).long(), use_cache=False).logits
  safetensors.numpy.save_file({"input_ids": ids, "logits": np.ascontiguousarray(logits.numpy(), np.float32)}, out)


if __name__ == "__main__":
  main()
