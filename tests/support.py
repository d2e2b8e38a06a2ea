"""What the tests share: running the program, the goldens, and writing safetensors files by hand, also wrong ones."""
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import struct

import ml_dtypes
import numpy as np
import safetensors.numpy

import measured

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
DATA = REPOSITORY / "tests" / "data"
GOLDENS = DATA / "goldens"
PROGRAM = pathlib.Path(os.environ.get("MAXPORT_PROGRAM", REPOSITORY / "build" / "maxport"))
# `make asan` and `make tsan` say that PROGRAM is built with a sanitizer.
SANITIZED = "MAXPORT_SANITIZER" in os.environ

# Exit statuses by kind of error; docs/exit-codes.md.
INVALID_ARGUMENT, UNSUPPORTED, NOT_FOUND, CORRUPT_DATA, IO_ERROR, RESOURCE_LIMIT, INTERRUPTED = 2, 3, 4, 5, 6, 7, 8

LLAMA = GOLDENS / "llama3.1-8b"


@dataclasses.dataclass
class Run:
  """One finished run of the program."""
  command: list[str]
  status: int
  seconds: float
  peak: int
  out: str
  err: str

  def __str__(self) -> str:
    return f"{' '.join(self.command)}\nstatus {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

  @property
  def peak_bytes(self) -> int:
    """Peak resident memory; 0 under a sanitizer, whose shadow memory would count too, so that all else is tested there."""
    return 0 if SANITIZED else self.peak

  @property
  def text(self) -> str:
    return self.out + self.err


def run(*arguments, timeout: float = 300, environment: dict | None = None) -> Run:
  """Runs the program to its end; any status."""
  assert PROGRAM.exists(), f"{PROGRAM} is not there: make build"
  command = [str(PROGRAM), *map(str, arguments)]
  return Run(command, *measured.run(command, timeout=timeout, env={**os.environ, **(environment or {})}))


def to_maxtext(source: pathlib.Path, out: pathlib.Path, *arguments, **options) -> Run:
  """`maxport to_maxtext` from a model directory to `out`."""
  return run("to_maxtext", f"base_output_directory={out}", f"--hf_model_path={source}", *arguments, **options)


def expected(family: str, tag: str) -> dict:
  return json.loads((GOLDENS / family / tag / "expected.json").read_text())


def expected_back(family: str, tag: str, dtype: str) -> dict:
  """The tensors that the reference's way back gives, by name."""
  runs = json.loads((GOLDENS / family / tag / "expected_hf.json").read_text())["runs"]
  run, = (r for r in runs if r["weight_dtype"] == dtype)
  return run["tensors"]


def golden_arguments(golden: dict, **replaced) -> list[str]:
  """The arguments of an expected.json; lazy=False, devices=1 and so on put others in their place."""
  arguments = [a for a in golden["args"] if not a.startswith(("--lazy_load_tensors=", "--simulated_cpu_devices_count="))]
  arguments.append(f"--lazy_load_tensors={str(replaced.pop('lazy', True)).lower()}")
  arguments.append(f"--simulated_cpu_devices_count={replaced.pop('devices', golden['devices'])}")
  return arguments + [f"{key}={value}" for key, value in replaced.items()]


def nothing_published(out: pathlib.Path) -> bool:
  """No finished or half-finished step under its final name."""
  return not (out / "0").exists()


# --- safetensors, written by hand ------------------------------------------------------------------------------------

_CODES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32", "float64": "F64", "int8": "I8", "uint8": "U8", "int32": "I32",
          "int64": "I64", "bool": "BOOL", "float8_e4m3fn": "F8_E4M3"}


def container(header, data: bytes = b"") -> bytes:
  """A safetensors file of any header (object or raw bytes) and data."""
  text = header if isinstance(header, bytes) else json.dumps(header).encode()
  return struct.pack("<Q", len(text)) + text + data


def save_tensors(file: pathlib.Path, tensors: dict[str, np.ndarray], metadata: dict | None = None) -> None:
  header, offset = ({} if metadata is None else {"__metadata__": metadata}), 0
  for name, array in tensors.items():
    header[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
    offset += array.nbytes
  file.write_bytes(container(header, b"".join(np.ascontiguousarray(a).tobytes() for a in tensors.values())))


def load_tensors(folder: pathlib.Path) -> dict[str, np.ndarray]:
  """All tensors of a folder's safetensors files."""
  tensors = {}
  for file in sorted(folder.glob("*.safetensors")):
    tensors |= safetensors.numpy.load_file(file)
  return tensors


def sha256(array: np.ndarray) -> str:
  return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def wrong_values(got: dict[str, np.ndarray], source: dict[str, np.ndarray], weight_dtype: str, save_dtype: str) -> list[str]:
  """Names of tensors that are not the source's, as far as `got` says the same names in whatever spelling."""
  def plain(name: str) -> str:
    parts = [part for part in name.split(".") if part not in ("model", "language_model", "thinker")]
    return ".".join(parts)
  originals = {plain(name): array for name, array in source.items()}
  wrong = []
  for name, array in got.items():
    want = originals.get(plain(name))
    if want is None or want.shape != array.shape:
      wrong.append(name)
    elif not np.array_equal(want.astype(save_dtype).astype(weight_dtype).astype(np.float32), array.astype(np.float32)):
      wrong.append(name)
  return wrong


# --- a tiny Llama ----------------------------------------------------------------------------------------------------

TINY = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 128,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
        "max_position_embeddings": 512, "hidden_act": "silu", "attention_bias": False, "mlp_bias": False}


def tiny_tensors(config: dict = TINY, seed: int = 0) -> dict[str, np.ndarray]:
  """Random bfloat16 tensors of the published names for a Llama of these dimensions."""
  rng = np.random.default_rng(seed)
  hidden, mlp = config["hidden_size"], config["intermediate_size"]
  head_dim = config.get("head_dim") or hidden // config["num_attention_heads"]
  query, key = config["num_attention_heads"] * head_dim, (config.get("num_key_value_heads") or config["num_attention_heads"]) * head_dim
  shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden)}
  for n in range(config["num_hidden_layers"]):
    layer = f"model.layers.{n}."
    shapes |= {layer + "self_attn.q_proj.weight": (query, hidden), layer + "self_attn.k_proj.weight": (key, hidden),
               layer + "self_attn.v_proj.weight": (key, hidden), layer + "self_attn.o_proj.weight": (hidden, query),
               layer + "mlp.gate_proj.weight": (mlp, hidden), layer + "mlp.up_proj.weight": (mlp, hidden),
               layer + "mlp.down_proj.weight": (hidden, mlp), layer + "input_layernorm.weight": (hidden,),
               layer + "post_attention_layernorm.weight": (hidden,)}
  shapes["model.norm.weight"] = (hidden,)
  if not config["tie_word_embeddings"]:
    shapes["lm_head.weight"] = (config["vocab_size"], hidden)
  return {name: rng.normal(0, 0.05, shape).astype(ml_dtypes.bfloat16) for name, shape in shapes.items()}


class Model:
  """A model directory that a test builds, then spoils: config, tensors and their places are plain attributes."""

  def __init__(self, folder: pathlib.Path, shards: int = 1, **config):
    self.folder = folder
    self.config = {**TINY, **config}
    self.tensors = tiny_tensors(self.config)
    self.metadata: dict | None = {"format": "pt"}
    names = list(self.tensors)
    per_shard = -(-len(names) // shards)
    self.place = {name: 0 if shards == 1 else n // per_shard for n, name in enumerate(names)}
    self.shards = shards
    self.index_extra: dict[str, str] = {}

  def file(self, shard: int) -> str:
    return "model.safetensors" if self.shards == 1 else f"model-{shard + 1:05d}-of-{self.shards:05d}.safetensors"

  def write(self) -> pathlib.Path:
    shutil.rmtree(self.folder, ignore_errors=True)
    self.folder.mkdir(parents=True)
    self.write_config(self.config)
    for shard in range(self.shards):
      save_tensors(self.folder / self.file(shard), {n: t for n, t in self.tensors.items() if self.place.get(n, 0) == shard}, self.metadata)
    if self.shards > 1:
      self.write_index({**{n: self.file(self.place.get(n, 0)) for n in self.tensors}, **self.index_extra})
    return self.folder

  def write_config(self, config) -> None:
    text = config if isinstance(config, str) else json.dumps(config, indent=2)
    (self.folder / "config.json").write_text(text)

  def write_index(self, weight_map: dict, total_size=None) -> None:
    total = sum(t.nbytes for t in self.tensors.values()) if total_size is None else total_size
    (self.folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
