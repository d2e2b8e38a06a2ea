"""Loads two Hugging Face folders with transformers and demands that they are one model; then that the second one is split
into files as huggingface_hub splits tensors in the order of their names.

usage: load_shards.py FOLDER SHARDED_FOLDER MAX_SHARD_SIZE

Needs the environment of requirements/transformers.txt.
"""
import json
import pathlib
import sys

import huggingface_hub
import torch
import transformers


def main() -> None:
  folder, sharded, size = sys.argv[1:]
  one, other = (transformers.AutoModelForCausalLM.from_pretrained(f, dtype="auto", output_loading_info=True) for f in (folder, sharded))
  for _, info in one, other:
    assert not info["missing_keys"] and not info["unexpected_keys"], info
  want, got = one[0].state_dict(), other[0].state_dict()
  assert list(want) == list(got)
  for name in want:
    assert torch.equal(want[name], got[name]), name
  tensors = {name: want[name].clone() for name in sorted(want)}
  split = huggingface_hub.split_torch_state_dict_into_shards(tensors, max_shard_size=size)
  index = json.loads((pathlib.Path(sharded) / "model.safetensors.index.json").read_text())
  assert index["weight_map"] == split.tensor_to_filename
  assert index["metadata"] == {"total_parameters": sum(t.numel() for t in tensors.values()), **split.metadata}


if __name__ == "__main__":
  main()
