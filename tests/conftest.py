"""Runs in the environment of requirements/orbax.txt; `make test` starts it. JAX is told its devices before any import."""
import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
here = pathlib.Path(__file__).parent
sys.path[:0] = [str(here), str(here.parent / "conformance")]
