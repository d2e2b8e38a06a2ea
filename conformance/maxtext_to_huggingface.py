"""MaxText's own to_huggingface, at the dimensions of any model folder and without a tokenizer.

usage: maxtext_to_huggingface.py MODEL_NAME ITEMS HF_FOLDER OUT [key=value ...]

ITEMS is BASE_OUTPUT_DIRECTORY/0/items; HF_FOLDER gives the configuration. Needs the environment of
requirements/maxtext.txt.
"""
import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=1"
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_default_prng_impl", "unsafe_rbg")
import maxtext
from maxtext.checkpoint_conversion import to_huggingface
from transformers import AutoConfig


class NoTokenizer:
  """Stands for a tokenizer that would come from the hub."""

  @staticmethod
  def from_pretrained(*_, **__):
    return None


def main() -> None:
  model, items, folder, out, *rest = sys.argv[1:]
  to_huggingface.HF_MODEL_CONFIGS[model] = AutoConfig.from_pretrained(folder)
  to_huggingface.AutoTokenizer = NoTokenizer
  to_huggingface.FLAGS(["to_huggingface"])  # parses no flags, so that their defaults can be read
  base = pathlib.Path(maxtext.__file__).parent / "configs" / "base.yml"
  rest = [a for a in rest if not a.startswith(("--", "model_name=", "override_model_config=", "hardware=", "skip_jax_distributed_system="))]
  to_huggingface.main(["to_huggingface", str(base), f"model_name={model}", f"load_parameters_path={items}", f"base_output_directory={out}",
                       "override_model_config=true", "hardware=cpu", "skip_jax_distributed_system=true", "run_name=conformance",
                       "log_config=false", *rest])


if __name__ == "__main__":
  main()
