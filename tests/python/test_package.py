"""The package as such: names, stubs, docstrings, version, program."""

import ast
import pathlib
import re
import subprocess
import sys

import maxport
from maxport.__main__ import program

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = pathlib.Path(maxport.__file__).parent


def test_stubs_name_what_the_package_has():
  stub = ast.parse((FOLDER / "__init__.pyi").read_text())
  named = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
  assert named == set(maxport.__all__) == {name for name in dir(maxport) if getattr(maxport, name) is not None}
  assert (FOLDER / "py.typed").exists()


def test_stubs_of_the_compiled_module_name_what_it_has():
  from maxport import _core

  stub = ast.parse((FOLDER / "_core.pyi").read_text())
  functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
  classes = {node.name: {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
             for node in stub.body if isinstance(node, ast.ClassDef)}
  public = {name for name in dir(_core) if not name.startswith("_")}
  assert functions | set(classes) == public
  for name, members in classes.items():
    own = vars(getattr(_core, name))
    assert members == {member for member in own if not member.startswith("_")}, name


def test_stubs_of_the_compiled_module_name_the_parameters_that_it_takes():
  from maxport import _core

  stub = ast.parse((FOLDER / "_core.pyi").read_text())
  functions = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
  functions["Tensor.read"] = next(item for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "Tensor"
                                  for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "read")
  for name, node in functions.items():
    owner, _, member = name.rpartition(".")
    signature = getattr(getattr(_core, owner) if owner else _core, member).__doc__.splitlines()[0]
    named = [argument.arg for argument in node.args.args if argument.arg != "self"]
    assert re.findall(r"(\w+): ", signature) == named, signature


def test_everything_public_is_described():
  for name in maxport.__all__:
    value = getattr(maxport, name)
    if callable(value):
      assert value.__doc__, name
      for member, item in vars(value).items() if isinstance(value, type) else ():
        if callable(item) and not member.startswith("_"):
          assert item.__doc__, f"{name}.{member}"


def test_the_version_is_that_of_the_build_and_of_the_program():
  version = re.search(r"project\(maxport VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
  assert maxport.__version__ == version
  run = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True)
  assert run.stdout == f"maxport {version}\n"


def test_the_program_starts_without_numpy():
  script = "import sys, maxport.__main__; print(sorted({'numpy', 'ml_dtypes', 'maxport._core'} & set(sys.modules)))"
  run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
  assert run.stdout == "[]\n"


def test_an_unknown_name_is_an_attribute_error():
  try:
    maxport.no_such_thing
  except AttributeError as error:
    assert "no_such_thing" in str(error)
  else:
    raise AssertionError("nothing was raised")
