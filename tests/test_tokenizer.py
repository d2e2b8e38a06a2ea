"""Token ids and texts beside the reference, Hugging Face's library `tokenizers`: tokenizers of each kind are trained
here, a corpus of awkward texts is encoded and decoded by both.

Needs the developer program tokenizer_tool beside the program, or in the folder that MAXPORT_TOOLS names.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import support

TOOL = pathlib.Path(os.environ.get("MAXPORT_TOOLS", support.PROGRAM.parent)) / "tokenizer_tool"

TRAINING = [
    "The quick brown fox jumps over the lazy dog. It's the year 2024, isn't it? They'll say we're 10000 km away.",
    "Les élèves français étudiaient à l'école; naïve façade, coöperation, Ångström.",
    "Быстрая коричневая лиса. 東京は日本の首都です。서울은 대한민국의 수도이다. नमस्ते दुनिया",
    "def f(x):\n    return x ** 2  # comment\n\n\tif x == 1_000:\r\n        pass\n",
    "👩‍👩‍👧‍👦 🇫🇷 emoji 😀😀😀 and more... --- === !!! ??? <html></html>",
] * 8

TEXTS = [
    "", " ", "a", "Hello, world!", " leading", "trailing ", "two  spaces   three    four", "\n", "\n\n\n", " \n \n", "tab\tand\r\nline\r",
    "It's they'll WE'RE I'VE don'T 'S 'ſ 'LL x'd", "12345 1,234.56 ١٢٣ Ⅻ ½ ²³ 007", "naïve café e\u0301 A\u030a \ufb01 ﬁ Ω Å",
    "東京2024年 日本語のテキスト。한국어 텍스트 हिन्दी ไทย עברית العربية", "👩‍👩‍👧‍👦🇫🇷😀 z\u0335\u0322a\u0334l\u0321g\u0336o", "a\u00a0b\u2003c\u3000d\u180ee\u200bf\u2028g\u0085h",
    "<|begin|>Hello<|end|>", "  <|begin|>  x  <|pad|>  y <|end|>\n<|pad|>", "<|begin|><|begin|>", "<|begin", "word wordy aword word", "word", "Über_word word.",
    "def f(x):\n\treturn x['key'] + 1  # ok\n\n\n    pass", "a\u0000b\u0001\u007f\ufffd\ufeff", "▁▁ meta ▁space▁", "<0x41><0xZZ>", "É\u0301\u0327 \u1e9b\u0323 ǆ",
    "supercalifragilisticexpialidocious " * 3, "=" * 70 + "\n" + " " * 40 + "x", "\U0010ffff\U00020000𝔘𝔫𝔦", "한글 \u1112\u1161\u11ab", "ab<mark>cd <mark> ef  <mark>gh  ",
]

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK3 = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

SPECIAL = [AddedToken("<|begin|>", special=True, normalized=False), AddedToken("<|end|>", special=True, normalized=False, lstrip=True),
           AddedToken("<|pad|>", special=True, normalized=False, rstrip=True)]
ADDED = [AddedToken("word", single_word=True, normalized=False), AddedToken("<|begin|>H", normalized=False), AddedToken("<mark>", normalized=True, lstrip=True, rstrip=True)]


def split(pattern, behavior="isolated", **options):
  return pre_tokenizers.Split(Regex(pattern), behavior, **options)


def trained(pre_tokenizer, decoder, normalizer=None, alphabet=True, size=600, **options) -> Tokenizer:
  tokenizer = Tokenizer(models.BPE(**options))
  tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre_tokenizer, decoder
  first = [options["unk_token"]] if "unk_token" in options else []
  if options.get("byte_fallback"):
    first += [f"<0x{byte:02X}>" for byte in range(256)]
  trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [], special_tokens=first,
                                show_progress=False)
  tokenizer.train_from_iterator(TRAINING, trainer)
  tokenizer.add_special_tokens(SPECIAL)
  tokenizer.add_tokens(ADDED)
  return tokenizer


def byte_level(*before, use_regex=True, prefix=False, **options) -> Tokenizer:
  last = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)
  return trained(pre_tokenizers.Sequence([*before, last]) if before else last, decoders.ByteLevel(), **options)


def with_template(tokenizer: Tokenizer, *around) -> Tokenizer:
  begin, end = tokenizer.token_to_id("<|begin|>"), tokenizer.token_to_id("<|end|>")
  template = processors.TemplateProcessing(single="<|begin|> $A <|end|>", pair="$A $B", special_tokens=[("<|begin|>", begin), ("<|end|>", end)])
  tokenizer.post_processor = processors.Sequence([*around, template]) if around else template
  return tokenizer


def pieces(pre_tokenizer, normalizer, decoder) -> Tokenizer:
  """SentencePiece's way: spaces are marks, unknown characters bytes."""
  return trained(pre_tokenizer, decoder, normalizer, alphabet=False, size=900, unk_token="<unk>", fuse_unk=True, byte_fallback=True)


def llama2() -> Tokenizer:
  normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
  decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
  tokenizer = pieces(pre_tokenizers.Split("▁", "merged_with_next"), normalizer, decoder)
  tokenizer.pre_tokenizer = None  # published ones have none; without one, training would take a text for a word
  return tokenizer


def gemma() -> Tokenizer:
  decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
  return pieces(pre_tokenizers.Split(" ", "merged_with_previous"), normalizers.Replace(" ", "▁"), decoder)


def mistral(scheme: str, cut: bool) -> Tokenizer:
  decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
  return pieces(pre_tokenizers.Metaspace("▁", scheme, cut), None, decoder)


KINDS = {
    "gpt2": lambda: byte_level(prefix=True),
    "smollm": lambda: byte_level(pre_tokenizers.Digits(individual_digits=True)),
    "digit runs": lambda: byte_level(pre_tokenizers.Digits(individual_digits=False)),
    "llama3": lambda: with_template(byte_level(split(LLAMA3), use_regex=False, ignore_merges=True), processors.ByteLevel(trim_offsets=True)),
    "qwen": lambda: byte_level(split(QWEN), use_regex=False, normalizer=normalizers.NFC()),
    "gpt-oss": lambda: byte_level(split(O200K), use_regex=False),
    "deepseek3": lambda: byte_level(split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK3), use_regex=False),
    "deepseek2": lambda: byte_level(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
                                    pre_tokenizers.Digits(individual_digits=True), use_regex=False),
    "scripts": lambda: byte_level(split(r"[\p{Han}&&]+|\p{Hangul}+".replace("&&", "")), split(r"\u0041\x{42}|\P{L}+", "merged_with_previous")),
    "inverted": lambda: byte_level(split(r"\p{L}+", "removed", invert=True), use_regex=False),
    "contiguous": lambda: byte_level(split(r"[aeiou]", "contiguous"), split(r"\p{N}", "merged_with_next"), split("[xyz ]", "merged_with_previous")),
    "nfkc": lambda: byte_level(normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])),
    "nfd": lambda: byte_level(normalizer=normalizers.NFD()),
    "nfkd": lambda: byte_level(normalizer=normalizers.NFKD()),
    "llama2": lambda: with_template(llama2()),
    "gemma": lambda: with_template(gemma()),
    "mistral": lambda: with_template(mistral("first", False)),
    "metaspace always": lambda: mistral("always", True),
    "metaspace never": lambda: mistral("never", True),
    "metaspace decoder": lambda: pieces(pre_tokenizers.Metaspace("▁", "always", True), None, decoders.Metaspace("▁", "always", True)),
    "unknown": lambda: trained(pre_tokenizers.Split(" ", "isolated"), None, alphabet=False, unk_token="<unk>"),
    "fused unknown": lambda: trained(pre_tokenizers.Split(" ", "isolated"), None, alphabet=False, unk_token="<unk>", fuse_unk=True),
    "no unknown": lambda: trained(pre_tokenizers.Split(" ", "isolated"), decoders.Fuse(), alphabet=False),
}


def ask(path: pathlib.Path, questions: list) -> list:
  done = subprocess.run([TOOL, path], input="\n".join(json.dumps(q) for q in questions), capture_output=True, text=True, encoding="utf-8")
  assert done.returncode == 0, done.stderr
  return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def random_texts(seed: int) -> list[str]:
  """Parts of the other texts, mixed."""
  source = random.Random(seed)
  parts = [part for text in TEXTS + TRAINING[:5] for part in (text, text[:3], text[-4:], *text)] + ["<|begin|>", "<|end|>", "<|pad|>", "word", "<mark>", " ", "\n"]
  return ["".join(source.choices(parts, k=source.randint(1, 12))) for _ in range(150)]


def compare(path: pathlib.Path, reference: Tokenizer, texts: list[str]) -> None:
  for text, got in zip(texts, ask(path, texts), strict=True):
    ids = reference.encode(text).ids
    want = {"ids": ids, "bare_ids": reference.encode(text, add_special_tokens=False).ids, "text": reference.decode(ids),
            "full_text": reference.decode(ids, skip_special_tokens=False)}
    assert got == want, text


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_are_the_reference_s(kind, tmp_path):
  tokenizer = KINDS[kind]()
  path = tmp_path / "tokenizer.json"
  tokenizer.save(str(path))
  compare(path, Tokenizer.from_file(str(path)), TEXTS + TRAINING[:5] + random_texts(1))


@pytest.mark.parametrize("kind", ["gpt2", "llama2", "gemma", "metaspace decoder", "unknown"])
def test_any_ids_decode_as_the_reference_decodes_them(kind, tmp_path):
  """Bytes that are no UTF-8 among them."""
  tokenizer = KINDS[kind]()
  path = tmp_path / "tokenizer.json"
  tokenizer.save(str(path))
  source = random.Random(2)
  lists = [source.choices(range(min(tokenizer.get_vocab_size(), high)), k=source.randint(0, 8)) for high in [300] * 200 + [10**9] * 100]
  for ids, got in zip(lists, ask(path, lists), strict=True):
    assert got == {"text": tokenizer.decode(ids), "full_text": tokenizer.decode(ids, skip_special_tokens=False)}, ids


def test_merges_may_be_texts(tmp_path):
  """As files have them that were written before `tokenizers` 0.20."""
  tokenizer = KINDS["smollm"]()
  saved = json.loads(tokenizer.to_str())
  saved["model"]["merges"] = [" ".join(pair) for pair in saved["model"]["merges"]]
  path = tmp_path / "tokenizer.json"
  path.write_text(json.dumps(saved))
  compare(path, tokenizer, TEXTS)


def test_long_texts_take_no_quadratic_time(tmp_path):
  for kind in "llama3", "llama2":
    tokenizer = KINDS[kind]()
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    compare(path, tokenizer, ["a" * 200_000, " " * 200_000, "ab cd é " * 50_000])


@pytest.mark.parametrize("change, place, named", [
    ({"normalizer": {"type": "Lowercase"}}, "normalizer", "Lowercase"),
    ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "StripAccents"}]}}, "normalizer: normalizers[1]", "StripAccents"),
    ({"pre_tokenizer": {"type": "BertPreTokenizer"}}, "pre_tokenizer", "BertPreTokenizer"),
    ({"post_processor": {"type": "BertProcessing", "sep": ["a", 1], "cls": ["b", 2]}}, "post_processor", "BertProcessing"),
    ({"decoder": {"type": "CTC"}}, "decoder", "CTC"),
    ({"model": {"type": "Unigram", "vocab": []}}, "model", "Unigram"),
    ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": r"\bword\b"}, "behavior": "Isolated", "invert": False}}, "pre_tokenizer: pattern", "\\b"),
    ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a*"}, "behavior": "Isolated", "invert": False}}, "pre_tokenizer: pattern", "a*"),
])
def test_what_is_not_supported_is_refused_by_name(change, place, named, tmp_path):
  saved = json.loads(KINDS["gpt2"]().to_str()) | change
  path = tmp_path / "tokenizer.json"
  path.write_text(json.dumps(saved))
  done = subprocess.run([TOOL, path], input="", capture_output=True, text=True)
  assert done.returncode != 0
  assert f"{path}: {place}" in done.stderr and named in done.stderr


def test_ids_without_a_token_and_broken_text_are_errors(tmp_path):
  tokenizer = KINDS["gpt2"]()
  path = tmp_path / "tokenizer.json"
  tokenizer.save(str(path))
  answer, = ask(path, [[tokenizer.get_vocab_size()]])
  assert f"no token with the id {tokenizer.get_vocab_size()}" in answer["error"]


def test_a_prompt_is_run_as_its_ids(tmp_path):
  folder = tmp_path / "model"
  shutil.copytree(support.LLAMA / "hf", folder)
  tokenizer = trained(pre_tokenizers.Split(" ", "isolated"), decoders.Fuse(), alphabet=False, size=140)  # of 160 rows
  prompt = "The quick brown fox"
  ids = tokenizer.encode(prompt).ids
  without = support.run("logits", folder, f"--prompt={prompt}")
  assert without.status == 2 and "--tokenizer names one" in without.err
  tokenizer.save(str(tmp_path / "tokenizer.json"))
  elsewhere = support.run("logits", folder, f"--prompt={prompt}", f"--tokenizer={tmp_path}", "--json")
  tokenizer.save(str(folder / "tokenizer.json"))
  beside = support.run("logits", folder, f"--prompt={prompt}", "--json")
  plain = support.run("logits", folder, f"--ids={','.join(map(str, ids))}", "--json")
  assert elsewhere.out == beside.out
  with_text, = json.loads(beside.out)["sequences"]
  without_text, = json.loads(plain.out)["sequences"]
  for entry in with_text["top"]:
    text = entry.pop("text")
    assert text == (tokenizer.decode([entry["id"]], skip_special_tokens=False) if entry["id"] < tokenizer.get_vocab_size() else "")
  assert with_text == without_text
