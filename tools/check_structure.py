"""Checks what the compiler cannot: the order of the rooms, sizes, tests beside sources, links, stray paths.

usage: tools/check_structure.py [ROOT]

Looks at the files that Git tracks or would track. Prints each violation as FILE:LINE: RULE: what was found and what is
asked; the exit status is 1 if there is any. Needs Python alone.
"""
import fnmatch
import pathlib
import re
import subprocess
import sys
from typing import Iterator, NamedTuple

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60  # the house asks for about 40; this is where a function stops fitting any screen

# Files that may be longer, each with the reason.
LONG_FILES: dict[str, str] = {}

# Sources (patterns) whose tests stand in another room or drive the built program, each with that file.
COVERED_BY = {
    "src/zstd/*code_literals.cc": "src/zstd/literals_frame_test.cc",
    "src/models/*.cc": "src/plan/golden_test.cc",
    "src/convert/*.cc": "tests/test_goldens_llama.py",
    "src/engine/*pipeline.cc": "tests/test_goldens_llama.py",
    "src/orbax/*write*.cc": "tests/test_orbax_interop.py",
    "src/orbax/checkpointables.cc": "tests/test_orbax_interop.py",
    "src/cli/*.cc": "tests/test_goldens_llama.py",
}

# Rooms that must not know each other although the order would allow it.
STRANGERS = {
    "zarr": {"safetensors"},
    "ocdbt": {"safetensors", "zarr"},
    "huggingface": {"zarr", "ocdbt", "orbax"},
    "models": {"safetensors", "zarr", "ocdbt", "orbax"},
    "plan": {"zarr", "ocdbt", "orbax"},
    # A wrong parameter map must not be able to hide in a forward pass.
    "forward": {"models", "plan"},
}

SOURCES = (".h", ".cc", ".py")
TEXTS = SOURCES + (".md", ".txt", ".sh", ".json", ".yml", ".cmake", ".supp")
# The words are put together from pieces so that this file passes its own check.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|not impl" r"emented)\b")
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.\]])/(work|farm|root|home)/[A-Za-z0-9_.]")
REGISTRY = re.compile(r"(py" r"pi\.org|pythonhosted\.org|deb\.debian" r"\.org|npm" r"js\.(org|com)|cra" r"tes\.io|download\.py" r"torch\.org)")
SKIPPED = re.compile(r"(GTEST_" r"SKIP|\bDIS" r"ABLED_|pytest\.sk" r"ip|mark\.sk" r"ip|mark\.xf" r"ail)")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


class Violation(NamedTuple):
  file: str
  line: int
  rule: str
  text: str

  def __str__(self) -> str:
    return f"{self.file}:{self.line}: {self.rule}: {self.text}"


def tracked_files(root: pathlib.Path) -> list[str]:
  """Every file that is or would be committed; all files where there is no repository."""
  command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
  found = subprocess.run(command, capture_output=True, text=True)
  if found.returncode == 0:
    names = [name for name in found.stdout.split("\0") if name]
  else:
    names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
  return sorted(name for name in set(names) if (root / name).is_file())


class Tree:
  """The files under check, read once."""

  def __init__(self, root: pathlib.Path):
    self.root = root
    self.files = tracked_files(root)
    self._lines: dict[str, list[str]] = {}

  def lines(self, name: str) -> list[str]:
    if name not in self._lines:
      self._lines[name] = (self.root / name).read_text(encoding="utf-8", errors="replace").splitlines()
    return self._lines[name]

  def named(self, *endings: str) -> Iterator[str]:
    return (name for name in self.files if name.endswith(endings))

  def has(self, name: str) -> bool:
    return (self.root / name).exists()

  def rooms(self) -> list[str]:
    """The rooms in the order of src/CMakeLists.txt."""
    if not self.has("src/CMakeLists.txt"):
      return []
    return [m.group(1) for line in self.lines("src/CMakeLists.txt") if (m := re.match(r"\s*add_subdirectory\((\w+)\)", line))]


def check_includes(tree: Tree) -> Iterator[Violation]:
  rooms = tree.rooms()
  place = {room: n for n, room in enumerate(rooms)}
  for name in tree.named(".h", ".cc"):
    parts = name.split("/")
    if parts[0] != "src" or len(parts) < 3:
      continue
    room = parts[1]
    if room not in place:
      yield Violation(name, 1, "rooms", f"room {room} is not listed in src/CMakeLists.txt")
      continue
    for number, line in enumerate(tree.lines(name), 1):
      if not (match := INCLUDE.match(line)):
        continue
      included = match.group(1)
      target = included.split("/")[0]
      if not (tree.has(f"src/{included}") or tree.has(f"include/{included}")):
        yield Violation(name, number, "rooms", f'"{included}" is no header of ours; write "room/file.h", or <...> for others\'')
      elif target in place and place[target] > place[room]:
        above = ", ".join(rooms[: place[room]]) or "none"
        yield Violation(name, number, "rooms", f'"{included}": room {room} may include only rooms above it ({above})')
      elif target in STRANGERS.get(room, ()):
        yield Violation(name, number, "rooms", f'"{included}": room {room} must not know room {target}')


def check_file_lengths(tree: Tree) -> Iterator[Violation]:
  for name in tree.named(*SOURCES):
    count = len(tree.lines(name))
    if count > MAX_FILE_LINES and name not in LONG_FILES:
      yield Violation(name, count, "length", f"{count} lines, at most {MAX_FILE_LINES} are allowed: split the file")


def functions(lines: list[str]) -> Iterator[tuple[int, int]]:
  """First and last line of each C++ function, by layout: a line at indent 0 or 2 that opens a brace closed there."""
  open_at: dict[int, int] = {}
  for number, line in enumerate(lines, 1):
    indent = len(line) - len(line.lstrip())
    text = line.strip()
    if indent in (0, 2) and re.search(r"\)\s*(const|noexcept|override|final|\s)*(->\s*[\w:<>,\s&*]+)?\{$", text) \
        and not re.match(r"(if|for|while|switch|else|do|namespace|\}|class|struct|enum|TEST|BENCHMARK)", text):
      open_at[indent] = number
    elif text.startswith("}") and indent in open_at:
      yield open_at.pop(indent), number


def check_function_lengths(tree: Tree) -> Iterator[Violation]:
  for name in tree.named(".h", ".cc"):
    for first, last in functions(tree.lines(name)):
      if last - first + 1 > MAX_FUNCTION_LINES and name not in LONG_FILES:
        yield Violation(name, first, "length", f"a function of {last - first + 1} lines, at most {MAX_FUNCTION_LINES} are allowed")


def includes(tree: Tree, name: str) -> list[str]:
  """The files of ours that a source includes, in its order."""
  return [f"src/{match.group(1)}" for line in tree.lines(name) if (match := INCLUDE.match(line))]


def exercised(tree: Tree, room: str) -> set[str]:
  """Files of a room that its tests reach: by including a header, and from there whatever implements it, that is,
  includes it before others of the room. A source with a test beside it is reached in any case."""
  own = [name for name in tree.named(".h", ".cc") if name.startswith(f"src/{room}/")]
  implementations: dict[str, list[str]] = {}
  for name in own:
    if name.endswith(".cc") and (headers := [h for h in includes(tree, name) if h.startswith(f"src/{room}/")]):
      implementations.setdefault(headers[0], []).append(name)
  tests = [name for name in own if name.endswith("_test.cc")]
  reached, waiting = set(), tests + [name.replace("_test.cc", ".cc") for name in tests]
  while waiting:
    name = waiting.pop()
    if name not in reached and name in own:
      reached.add(name)
      for header in includes(tree, name):
        waiting += [header, *implementations.get(header, [])]
  return reached


def check_tests(tree: Tree) -> Iterator[Violation]:
  """Every source is exercised by a test of its room, or by the test that COVERED_BY names."""
  reached = {room: exercised(tree, room) for room in tree.rooms()}
  for name in tree.named(".cc"):
    if not name.startswith("src/") or re.search(r"_(test|bench|fuzz)\.cc$|/main\.cc$", name):
      continue
    covering = [test for pattern, test in COVERED_BY.items() if fnmatch.fnmatch(name, pattern)]
    if name not in reached.get(name.split("/")[1], ()) and not any(map(tree.has, covering)):
      test = name.removesuffix(".cc") + "_test.cc"
      yield Violation(name, 1, "tests", f"no test of its room reaches it: write {test} (or name its test in COVERED_BY of this check)")


def check_listed(tree: Tree) -> Iterator[Violation]:
  """A source that no CMakeLists.txt names is neither compiled nor run."""
  for name in tree.named(".cc"):
    folder, _, file = name.rpartition("/")
    build = f"{folder}/CMakeLists.txt"
    if name.startswith("src/") and tree.has(build):
      if not re.search(rf"(?<![\w.-]){re.escape(file)}(?![\w.-])", "\n".join(tree.lines(build))):
        yield Violation(name, 1, "build", f"{build} does not name it, so it is never built")


def check_words(tree: Tree) -> Iterator[Violation]:
  for name in tree.files:
    if name.startswith("tests/data/") or not (name.endswith(TEXTS) or "." not in name.rsplit("/", 1)[-1]):
      continue
    for number, line in enumerate(tree.lines(name), 1):
      if MACHINE_PATH.search(line):
        yield Violation(name, number, "paths", "an absolute path of one machine")
      if "../sha" "red" in line:
        yield Violation(name, number, "paths", "a folder outside the repository")
      if REGISTRY.search(line):
        yield Violation(name, number, "paths", "the host of a package registry; name packages, not hosts")
      if name.endswith(SOURCES) and (match := UNFINISHED.search(line)):
        yield Violation(name, number, "unfinished", f"{match.group(1)}: finish it or say what is so")
      if name.endswith(SOURCES) and (match := SKIPPED.search(line)):
        yield Violation(name, number, "skipped", f"{match.group(1)}: a test that may not run is no test")


def anchors(lines: list[str]) -> set[str]:
  """The anchors that Markdown headings get."""
  found = set()
  for line in lines:
    if match := re.match(r"#+\s+(.*)", line):
      text = re.sub(r"[^\w\- ]", "", match.group(1).strip().lower())
      found.add(text.replace(" ", "-"))
  return found


def check_links(tree: Tree) -> Iterator[Violation]:
  for name in tree.named(".md"):
    for number, line in enumerate(tree.lines(name), 1):
      for target in LINK.findall(line):
        if re.match(r"[a-z]+:", target):
          continue
        path, _, anchor = target.partition("#")
        file = (pathlib.PurePosixPath(name).parent / path).as_posix() if path else name
        if not (tree.root / file).exists():
          yield Violation(name, number, "links", f"{target} leads nowhere")
        elif anchor and file.endswith(".md"):
          resolved = (tree.root / file).resolve().relative_to(tree.root.resolve()).as_posix()
          if anchor not in anchors(tree.lines(resolved)):
            yield Violation(name, number, "links", f"{resolved} has no heading for #{anchor}")


CHECKS = [check_includes, check_file_lengths, check_function_lengths, check_tests, check_listed, check_words, check_links]


def main() -> int:
  default = pathlib.Path(__file__).resolve().parent.parent
  tree = Tree(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
  found = [violation for check in CHECKS for violation in check(tree)]
  for violation in found:
    print(violation)
  print(f"structure: {len(tree.files)} files, {len(found)} violations")
  return 1 if found else 0


if __name__ == "__main__":
  sys.exit(main())
