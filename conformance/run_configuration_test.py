"""MaxText itself accepts the run configurations that maxport writes and understands them as meant: for every named model
at full size and for every small model of the goldens.

Needs the developer program maxtext_tool: MAXPORT_TOOLS names its folder, otherwise it is built. MAXPORT_MAXTEXT names
the interpreter of an environment that has MaxText.
"""
import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent
GOLDENS = REPOSITORY / "tests" / "data" / "goldens"

# What a name alone gives and a run configuration does not say, or says with another value for a good reason: choices of
# training, and what src/maxtext/derived_settings_test.cc lists one by one.
NOT_COMPARED = {
    "base_config", "base_output_directory", "checkpoint_dir", "tensorboard_dir", "metrics_dir", "tokenizer_path",
    "tokenizer_type", "load_balance_loss_weight", "dump_hlo_xla_flags",
    "managed_mldiagnostics_dir"}
DIFFERENT = {
    "mistral-7b": {"rope_max_timescale"},
    "qwen3-omni-30b-a3b": {"n_window_infer_for_audio"},
    "deepseek3-671b": {"n_routing_groups", "topk_routing_group"},
    "deepseek3.2-671b": {"n_routing_groups", "topk_routing_group"},
    "deepseek4-tiny": {"original_max_position_embeddings"},
    "gemma2-2b": {"vocab_size"}, "gemma2-9b": {"vocab_size"}, "gemma2-27b": {"vocab_size"},
}
WITHOUT_EFFECT = {
    # unless logits_via_embedding
    "normalize_embedding_logits",
    # a name that begins with llama3.1 selects the same rope
    "rope_type",
    # without yarn
    "max_position_embeddings", "rope_attention_scaling", "rope_interleave", "rope_truncate",
}


@pytest.fixture(scope="session")
def tool() -> pathlib.Path:
  if path := os.environ.get("MAXPORT_TOOLS"):
    return pathlib.Path(path) / "maxtext_tool"
  for command in ["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release", "--target", "maxtext_tool"]:
    subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL)
  return REPOSITORY / "build" / "maxtext_tool"


def run(tool: pathlib.Path, *arguments) -> str:
  done = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  return done.stdout


def load(command_lines: list[list[str]]) -> list[dict]:
  python = os.environ.get("MAXPORT_MAXTEXT")
  assert python, "MAXPORT_MAXTEXT must name a Python interpreter; `make conformance` makes the environment and sets it"
  done = subprocess.run([python, HERE / "load_configurations.py"], input=json.dumps(command_lines), capture_output=True, text=True)
  assert done.returncode == 0, done.stderr[-3000:]
  return json.loads(done.stdout)


def differences(ours: dict, theirs: dict, ignored: set[str]) -> dict:
  assert "error" not in ours, ours["error"]
  assert "error" not in theirs, theirs["error"]
  return {key: (ours.get(key), value) for key, value in theirs.items()
          if ours.get(key) != value and key not in NOT_COMPARED | ignored}


def ignored_settings(ours: dict) -> set[str]:
  yarn, tied = ours["rope_type"] == "yarn", ours["logits_via_embedding"]
  return {key for key in WITHOUT_EFFECT
          if key == "rope_type" or (key == "normalize_embedding_logits" and not tied) or (key.startswith(("rope_", "max_")) and not yarn)}


def two_of_each_family(tool) -> list[tuple[str, str]]:
  """The first and the last; that the settings of all are those of MaxText's files is a unit test."""
  families: dict[str, list[str]] = {}
  for line in run(tool, "names").splitlines():
    name, family = line.split()
    if name not in ("qwen3-coder-480b-a35b", "qwen3.5-35b-fp8"):  # MaxText has no file of these names
      families.setdefault(family, []).append(name)
  return [(name, family) for family, names in families.items() for name in dict.fromkeys((names[0], names[-1]))]


def scan_words(name: str, family: str) -> list[str]:
  """MaxText scans neither the small Gemma 4 nor models whose pictures enter at several layers."""
  return ["scan_layers=false"] if family in ("gemma4-small", "qwen3-vl", "qwen3-omni", "weaver") else []


def test_full_size_models_mean_what_their_names_mean(tool, tmp_path):
  command_lines, compared = [], []
  for name, family in two_of_each_family(tool):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "config.json").write_text(run(tool, "config", name))
    pictures = ["use_multimodal=true", "override_model_config=true"] if family in ("qwen3-vl", "qwen3-omni", "weaver") else []
    audio = ["use_audio=true"] if family == "qwen3-omni" else []
    fp8 = ["float8_weights=true"] if name.endswith("fp8") else []
    scan = scan_words(name, family)
    run(tool, "run_configuration", folder / "config.json", folder, f"model_name={name}", *pictures, *audio, *fp8, *scan)
    # MaxText refuses these with its default kernel.
    kernel = ["attention=dot_product"] if family in ("deepseek3.2", "deepseek4") else []
    command_lines += [[str(folder / "maxtext.yml")], [f"model_name={name}", *pictures[:1], *audio, *scan, *kernel]]
    compared.append((name, family))
  loaded = load(command_lines)
  problems = {}
  for (name, family), ours, theirs in zip(compared, loaded[::2], loaded[1::2]):
    # Text only, unless MaxText's file says otherwise: then the picture settings of its file mean nothing.
    text_only = {key for key in theirs if key.endswith(("_for_vit", "_for_audio"))} | {"vision_encoder_block", "image_placeholder", "vision_output_length"}
    ignored = DIFFERENT.get(name, set()) | (ignored_settings(ours) if "error" not in ours else set())
    ignored |= set() if theirs.get("use_multimodal") else text_only
    ignored |= {"enable_dropout", "model_name", "float32_gate_logits", "routed_bias_update_rate", "log_moe_bias_norms", "image_placeholder"}
    if found := differences(ours, theirs, ignored):
      problems[name] = found
  assert not problems


def goldens() -> list[pathlib.Path]:
  """One a family and scan form, with pictures where the reference converts them."""
  every = sorted(path for path in GOLDENS.glob("*/*/expected.json") if "float32" in path.parent.name and "lora" not in path.parent.name)
  return [path for path in every if not (path.parent.parent / f"{path.parent.name}-mm").exists()]


def test_small_models_mean_what_the_reference_was_told(tool, tmp_path):
  command_lines, compared = [], []
  for golden in goldens():
    expected = json.loads(golden.read_text())
    words = [word for word in expected["args"] if not word.startswith("--") and word.split("=")[0] not in ("hardware", "skip_jax_distributed_system")]
    folder = tmp_path / f"{golden.parent.parent.name}-{golden.parent.name}"
    folder.mkdir()
    run(tool, "run_configuration", golden.parent.parent / "hf" / "config.json", folder, *words)
    command_lines += [[str(folder / "maxtext.yml")], words]
    compared.append(folder.name)
  loaded = load(command_lines)
  problems = {}
  for name, ours, theirs in zip(compared, loaded[::2], loaded[1::2]):
    pictures = theirs.get("use_multimodal")
    ignored = ignored_settings(ours) if "error" not in ours else set()
    ignored |= {"enable_dropout", "model_name", "override_model_config", "attention", "image_placeholder", "image_size_for_vit",
                "vision_output_length", "position_id_per_seconds", "routed_bias_update_rate", "log_moe_bias_norms"}
    if not pictures:
      ignored |= {key for key in theirs if key.endswith(("_for_vit", "_for_audio"))} | {"vision_encoder_block"}
    if name.startswith("olmo3"):  # its layers have no yarn, which only config.json says
      ignored |= {"rope_type", "rope_factor", "beta_fast", "beta_slow", "original_max_position_embeddings", "max_position_embeddings"}
    if found := differences(ours, theirs, ignored):
      problems[name] = found
  assert not problems


def test_a_faulty_configuration_is_noticed(tool, tmp_path):
  golden = GOLDENS / "olmo3-7b"
  run(tool, "run_configuration", golden / "hf" / "config.json", tmp_path, "family=olmo3")
  whole = tmp_path / "maxtext.yml"
  (tmp_path / "models" / "olmo3-7b.yml").unlink()
  without_model_file, = load([[str(whole)]])
  assert without_model_file["base_emb_dim"] == 4096, "MaxText's own file has taken over, which the second file prevents"
