"""MaxText's own to_maxtext, at the dimensions of any model folder.

usage: maxtext_convert.py MODEL_NAME HF_FOLDER OUT [--simulated_cpu_devices_count=N] [key=value ...]

MaxText takes the Hugging Face configuration from a table of its own, which holds full-size models; the folder's
config.json is put in its place. Needs the environment of requirements/maxtext.txt.
"""
import os
import pathlib
import sys


def options() -> tuple[list[str], str]:
  arguments = sys.argv[1:]
  devices = [a.partition("=")[2] for a in arguments if a.startswith("--simulated_cpu_devices_count=")]
  return arguments, devices[-1] if devices else "16"


ARGUMENTS, DEVICES = options()
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_default_prng_impl", "unsafe_rbg")
import maxtext
from maxtext.checkpoint_conversion import to_maxtext
from transformers import AutoConfig

FIXED = ["override_model_config=true", "hardware=cpu", "skip_jax_distributed_system=true", "run_name=conformance",
         "enable_checkpointing=true", "log_config=false"]


def main() -> None:
  model, folder, out, *rest = ARGUMENTS
  to_maxtext.HF_MODEL_CONFIGS[model] = AutoConfig.from_pretrained(folder)
  fixed_keys = {a.partition("=")[0] for a in FIXED} | {"model_name"}
  rest = [a for a in rest if a.partition("=")[0] not in fixed_keys]
  base = pathlib.Path(maxtext.__file__).parent / "configs" / "base.yml"
  to_maxtext.main(["to_maxtext", str(base), f"model_name={model}", f"base_output_directory={out}", f"--hf_model_path={folder}", *FIXED, *rest])


if __name__ == "__main__":
  main()
