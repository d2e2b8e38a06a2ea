"""Loads model folders with transformers and prints, for each, the keys that are missing, unexpected or mismatched.

usage: load_pretrained.py FOLDER ...     (in the environment of requirements/transformers.txt)
"""
import json
import sys

import torch
import transformers


def load(folder: str) -> dict:
  config = transformers.AutoConfig.from_pretrained(folder)
  model_class = getattr(transformers, (config.architectures or [""])[0], None) or transformers.AutoModelForCausalLM
  _, info = model_class.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
  return {key: sorted(map(str, info[key])) for key in ("missing_keys", "unexpected_keys", "mismatched_keys")}


if __name__ == "__main__":
  for path in sys.argv[1:]:
    try:
      print(json.dumps({"folder": path, **load(path)}), flush=True)
    except Exception as error:  # what transformers says is the result
      print(json.dumps({"folder": path, "error": f"{type(error).__name__}: {error}"}), flush=True)
