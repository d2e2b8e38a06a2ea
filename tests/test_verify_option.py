"""`--verify` of both conversions reads the output back, and says so; a checkpoint that is damaged is not passed on in silence."""
import re

import pytest

import support


@pytest.mark.parametrize("family", ["llama3.1-8b", "qwen3-30b-a3b"])
def test_both_ways_read_back_what_they_wrote(tmp_path, family):
  hf = support.GOLDENS / family / "hf"
  there = support.to_maxtext(hf, tmp_path / "out", "scan_layers=true", "--verify")
  assert there.status == 0 and re.search(r"INFO Verified: \d+ leaves, \d+ chunks read back, digests equal", there.err), there
  assert re.search(r"INFO Verified: logits of 16 tokens agree with the source.s, cosine 0\.99999|cosine 1\.0", there.err), there
  back = support.run("to_huggingface", f"load_parameters_path={tmp_path / 'out' / '0' / 'items'}", f"base_output_directory={tmp_path / 'back'}",
                     "weight_dtype=bfloat16", "--verify")
  assert back.status == 0 and re.search(r"INFO Verified: digests of the checkpoint equal, \d+ tensors read back, equal to a second conversion", back.err), back
  assert not list(tmp_path.glob("*.maxport-verify"))


def test_without_digests_the_model_alone_is_verified(tmp_path):
  samples = support.DATA / "orbax_samples"
  back = support.run("to_huggingface", f"load_parameters_path={samples / 'mt_ocdbt_zarr3_dev2_bfloat16'}", f"base_output_directory={tmp_path / 'back'}",
                     f"--hf_model_path={samples / 'hf_tiny_llama'}", "weight_dtype=bfloat16", "--verify")
  assert back.status == 0 and "WARNING the checkpoint has no digests" in back.err, back


def test_a_damaged_checkpoint_is_not_passed_on(tmp_path):
  done = support.to_maxtext(support.LLAMA / "hf", tmp_path / "out", "scan_layers=true", "checkpoint_storage_use_ocdbt=false",
                            "checkpoint_storage_use_zarr3=false", "--compression=none")
  assert done.status == 0, done
  chunk, = (tmp_path / "out" / "0" / "items" / "params.params.decoder.decoder_norm.scale").glob("0*")
  raw = bytearray(chunk.read_bytes())
  raw[3] ^= 1
  chunk.write_bytes(raw)
  arguments = [f"load_parameters_path={tmp_path / 'out' / '0' / 'items'}", "weight_dtype=bfloat16"]
  assert support.run("to_huggingface", *arguments, f"base_output_directory={tmp_path / 'a'}").status == 0, "nothing else notices"
  back = support.run("to_huggingface", *arguments, f"base_output_directory={tmp_path / 'b'}", "--verify")
  assert back.status == support.CORRUPT_DATA and "decoder_norm.scale: its digest is not the one that was recorded" in back.err, back
