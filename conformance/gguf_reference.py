"""Compares a folder with what transformers makes of the GGUF file it came from: tensors and token ids.

usage: gguf_reference.py FILE.gguf FOLDER

Needs the environment of requirements/transformers.txt. Prints a JSON object.
"""
import json
import pathlib
import sys

import tokenizers
import torch
import transformers

TEXT = "The capital of France is Paris, isn't it? 12345 caf\u00e9s\n\n  indented_name __x (a)"


def main() -> None:
  file, folder = map(pathlib.Path, sys.argv[1:3])
  want = transformers.AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).state_dict()
  got = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
  theirs = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)(TEXT)["input_ids"]
  ours = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")).encode(TEXT).ids
  print(json.dumps({"only_in_one": sorted(want.keys() ^ got.keys()), "different": [n for n in want if not torch.equal(want[n], got[n])],
                    "ids_equal": theirs == ours, "tensors": len(want)}))


if __name__ == "__main__":
  main()
