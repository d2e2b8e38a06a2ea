"""A byte-pair tokenizer, enough for plain prompts: reads tokenizer.json, splits as GPT-2 does with every digit alone."""
import json
import pathlib
import re


def byte_characters() -> dict[int, str]:
  """The printable character that stands for each byte in a byte-level vocabulary."""
  plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
  others = [b for b in range(256) if b not in plain]
  return {b: chr(b) for b in plain} | {b: chr(256 + n) for n, b in enumerate(others)}


class BytePairs:
  WORDS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")

  def __init__(self, tokenizer_json: pathlib.Path):
    model = json.loads(tokenizer_json.read_text(encoding="utf-8"))["model"]
    self.ids = model["vocab"]
    self.tokens = {n: token for token, n in self.ids.items()}
    self.rank = {tuple(pair): n for n, pair in enumerate(model["merges"])}
    self.character = byte_characters()
    self.byte = {c: b for b, c in self.character.items()}

  def merge(self, word: str) -> list[str]:
    parts = [self.character[b] for b in word.encode()]
    while len(parts) > 1:
      best = min(range(len(parts) - 1), key=lambda n: self.rank.get((parts[n], parts[n + 1]), len(self.rank)))
      if (parts[best], parts[best + 1]) not in self.rank:
        break
      parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return parts

  def encode(self, text: str) -> list[int]:
    return [self.ids[part] for word in self.WORDS.findall(text) for part in self.merge(word)]

  def decode(self, ids: list[int]) -> str:
    return bytes(self.byte[c] for n in ids for c in self.tokens[n]).decode(errors="replace")
