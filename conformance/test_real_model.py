"""The trained model that the demo uses equals what transformers' own GGUF loader makes of the same file."""
import json

import real_model


def test_every_tensor_equals_that_of_transformers_own_loader(transformers, tmp_path):
  gguf_file = real_model.download(tmp_path)
  real_model.write_model(gguf_file, tmp_path / "hf", "float32")
  result = json.loads(transformers("gguf_reference.py", gguf_file, tmp_path / "hf").stdout.splitlines()[-1])
  assert result == {"only_in_one": [], "different": [], "ids_equal": True, "tensors": 273}
