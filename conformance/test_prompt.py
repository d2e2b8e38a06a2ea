"""What a trained model says next, from each layout."""
import json

import pytest
import tokenizers

import support

PROMPT = "The capital of France is"


@pytest.fixture(scope="module", params=["huggingface", "scanned", "unscanned"])
def model(request, smollm2, tmp_path_factory):
  if request.param == "huggingface":
    return smollm2
  out = tmp_path_factory.mktemp("prompt")
  done = support.to_maxtext(smollm2, out, f"scan_layers={str(request.param == 'scanned').lower()}")
  assert done.status == 0, done
  return out / "0"


def top(model, smollm2, source: str) -> list[dict]:
  done = support.run("logits", model, source, f"--tokenizer={smollm2}", "--json")
  assert done.status == 0, done
  sequence, = json.loads(done.out)["sequences"]
  return sequence["top"]


def test_the_capital_of_france_is_paris(model, smollm2):
  assert top(model, smollm2, f"--prompt={PROMPT}")[0]["text"] == " Paris"


@pytest.mark.parametrize("prompt", [PROMPT, "def main():\n\treturn 2024", "L'été à l'école 🇫🇷  !", "<|im_start|>user\nHi<|im_end|>"])
def test_a_prompts_ids_are_those_of_the_reference(smollm2, prompt):
  ids = tokenizers.Tokenizer.from_file(str(smollm2 / "tokenizer.json")).encode(prompt).ids
  assert top(smollm2, smollm2, f"--prompt={prompt}") == top(smollm2, smollm2, f"--ids={','.join(map(str, ids))}")
