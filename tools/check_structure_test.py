"""Each check of check_structure.py is shown a tree that breaks its rule, and one that does not."""
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_structure

GOOD = {
    "src/CMakeLists.txt": "add_subdirectory(base)\nadd_subdirectory(safetensors)\nadd_subdirectory(zarr)\n",
    "src/base/CMakeLists.txt": "maxport_room(base SOURCES bytes.cc crc.cc TESTS bytes_test.cc)\n",
    "src/base/bytes.h": "#pragma once\n#include <span>\n",
    "src/base/bytes.cc": '#include "base/bytes.h"\n#include "base/crc.h"\n',
    "src/base/bytes_test.cc": '#include "base/bytes.h"\n',
    "src/base/crc.h": "#pragma once\n",
    "src/base/crc.cc": '#include "base/crc.h"\n',
    "src/zarr/CMakeLists.txt": "maxport_room(zarr SOURCES chunk.cc TESTS chunk_test.cc)\n",
    "src/zarr/chunk.cc": '#include "base/bytes.h"\n',
    "src/zarr/chunk.h": "#pragma once\n",
    "src/zarr/chunk_test.cc": '#include "zarr/chunk.h"\n',
    "README.md": "# Title\n[bytes](src/base/bytes.h), [here](#title), [there](docs/page.md#a-heading), [site](https://example.org)\n",
    "docs/page.md": "## A heading\n[back](../README.md)\n",
}


def violations(tmp_path: pathlib.Path, changes: dict[str, str | None]) -> list[str]:
  for name, text in {**GOOD, **changes}.items():
    if text is not None:
      (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
      (tmp_path / name).write_text(text)
  tree = check_structure.Tree(tmp_path)
  return [str(v) for check in check_structure.CHECKS for v in check(tree)]


def test_a_good_tree_passes(tmp_path):
  assert violations(tmp_path, {}) == []


BAD = {
    "an include of a room below": ({"src/base/bytes.h": '#pragma once\n#include "zarr/chunk.h"\n'},
                                   'src/base/bytes.h:2: rooms: "zarr/chunk.h": room base may include only rooms above it'),
    "an include between formats": ({"src/zarr/chunk.cc": '#include "safetensors/file.h"\n', "src/safetensors/file.h": ""},
                                   'src/zarr/chunk.cc:1: rooms: "safetensors/file.h": room zarr must not know room safetensors'),
    "an include without its room": ({"src/base/crc.cc": '#include "base/crc.h"\n#include "bytes.h"\n'}, 'src/base/crc.cc:2: rooms: "bytes.h" is no header of ours'),
    "an unlisted room": ({"src/attic/old.h": ""}, "src/attic/old.h:1: rooms: room attic is not listed"),
    "a long file": ({"src/base/bytes.h": "\n" * 501}, "src/base/bytes.h:501: length: 501 lines, at most 500"),
    "a long function": ({"src/base/crc.cc": '#include "base/crc.h"\n' "int f(int x) {\n" + "  ++x;\n" * 60 + "}\n"}, "src/base/crc.cc:2: length: a function of 62 lines"),
    "a long method": ({"src/base/bytes.h": "class C {\n  int f() const {\n" + "    ++x;\n" * 60 + "  }\n};\n"},
                      "src/base/bytes.h:2: length: a function of 62 lines"),
    "a source without a test": ({"src/zarr/chunk_test.cc": None}, "src/zarr/chunk.cc:1: tests: no test of its room reaches it"),
    "a test that is not built": ({"src/base/CMakeLists.txt": "maxport_room(base SOURCES bytes.cc crc.cc)\n"},
                                 "src/base/bytes_test.cc:1: build: src/base/CMakeLists.txt does not name it"),
    "a machine's path": ({"docs/page.md": "see /ro" "ot/x\n## A heading\n"}, "docs/page.md:1: paths: an absolute path"),
    "a registry's host": ({"Makefile": "x = https://py" "pi.org/simple\n"}, "Makefile:1: paths: the host of a package registry"),
    "unfinished work": ({"src/base/bytes.h": "// TO" "DO: more\n"}, "src/base/bytes.h:1: unfinished: TO" "DO"),
    "a skipped test": ({"src/base/bytes_test.cc": '#include "base/bytes.h"\nGTEST_' "SKIP();\n"}, "src/base/bytes_test.cc:2: skipped: GTEST_" "SKIP"),
    "a dead link": ({"docs/page.md": "## A heading\n[x](nowhere.md)\n"}, "docs/page.md:2: links: nowhere.md leads nowhere"),
    "a dead anchor": ({"docs/page.md": "## Another heading\n"}, "README.md:2: links: docs/page.md has no heading for #a-heading"),
}


@pytest.mark.parametrize("changes, expected", BAD.values(), ids=BAD.keys())
def test_it_finds(tmp_path, changes, expected):
  found = violations(tmp_path, changes)
  assert any(v.startswith(expected) for v in found), found
  assert len(found) == 1, found


def test_the_program_says_so_with_its_exit_status(tmp_path):
  violations(tmp_path, {})
  script = check_structure.__file__
  good = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
  (tmp_path / "docs/page.md").write_text("nothing here\n")
  bad = subprocess.run([sys.executable, script, tmp_path], capture_output=True, text=True)
  assert (good.returncode, bad.returncode) == (0, 1), good.stdout + bad.stdout
  assert "1 violations" in bad.stdout
