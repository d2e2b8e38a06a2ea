"""The trained model that the demo uses equals what transformers' own GGUF loader makes of the same file, and speaks in both
layouts."""
import json

import real_model
import support


def test_every_tensor_equals_that_of_transformers_own_loader(transformers, tmp_path):
  gguf_file = real_model.download(tmp_path)
  real_model.write_model(gguf_file, tmp_path / "hf", "float32")
  result = json.loads(transformers("gguf_reference.py", gguf_file, tmp_path / "hf").stdout.splitlines()[-1])
  assert result == {"only_in_one": [], "different": [], "ids_equal": True, "tensors": 273}


def test_a_forward_pass_through_either_layout_knows_the_capital_of_france(smollm2, tmp_path):
  models = {"huggingface": smollm2}
  for layout in ("true", "false"):
    assert support.to_maxtext(smollm2, tmp_path / layout, f"scan_layers={layout}").status == 0
    models[layout] = tmp_path / layout / "0"
  for model in models.values():
    done = support.run("logits", model, f"--tokenizer={smollm2}", "--prompt=The capital of France is", "--json")
    assert done.status == 0, done
    assert json.loads(done.out)["sequences"][0]["top"][0]["text"] == " Paris"
