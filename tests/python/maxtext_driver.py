"""Runs MaxText's own converter on a golden's small model, as shipped or with maxport's Orbax handler.

usage: maxtext_driver.py stock|maxport MODEL HF_DIR OUT [--flag=value | key=value ...]

MaxText takes the Hugging Face configuration of MODEL from a table that holds the full-size models; this puts the
golden's in its place. MaxText's eager path wants PyTorch only to open safetensors files; where that is not installed,
they are opened as NumPy arrays, which is what its lazy path does by itself.
"""

import importlib.util
import os
import pathlib
import runpy
import sys


def main() -> int:
  which, model, hf, out, *rest = sys.argv[1:]
  os.environ["JAX_PLATFORMS"] = "cpu"
  os.environ.setdefault("HF_HUB_OFFLINE", "1")

  import maxtext
  from maxtext.checkpoint_conversion.utils import hf_model_configs, utils
  from transformers import AutoConfig

  hf_model_configs.HF_MODEL_CONFIGS[model] = AutoConfig.from_pretrained(hf)
  if importlib.util.find_spec("torch") is None:
    load = utils.load_hf_dict_from_safetensors
    utils.load_hf_dict_from_safetensors = lambda *a, **k: load(*a, **{**k, "framework": "np"})
  base = pathlib.Path(maxtext.__file__).parent / "configs" / "base.yml"
  arguments = [
      str(base), f"model_name={model}", f"base_output_directory={out}", f"--hf_model_path={hf}",
      "override_model_config=true", "hardware=cpu", "skip_jax_distributed_system=true", "run_name=r",
      "log_config=false", *rest
  ]
  if which == "maxport":
    import maxport.maxtext
    return maxport.maxtext.main(["to_maxtext", *arguments])
  sys.argv = ["to_maxtext", *arguments]
  runpy.run_module("maxtext.checkpoint_conversion.to_maxtext", run_name="__main__", alter_sys=True)
  return 0


if __name__ == "__main__":
  sys.exit(main())
