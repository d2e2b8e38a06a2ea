"""What the README says about the program is what the program says."""
import re

import support


def test_the_table_of_models_is_the_programs_own():
  text = (support.REPOSITORY / "README.md").read_text()
  table = re.search(r"<!-- models -->\n(.*?)<!-- /models -->", text, re.S).group(1)
  assert table == support.run("models", "--markdown").out, "run build/maxport models --markdown and put its output into README.md"


def test_every_command_of_the_help_has_help_of_its_own():
  listed = re.findall(r"^  (\w+) ", support.run("--help").out.split("commands:")[1], re.M)
  assert {"to_maxtext", "to_huggingface", "verify", "models"} <= set(listed)
  for command in listed:
    done = support.run(command, "--help")
    assert done.status == 0 and "usage: maxport " + command in done.out, done
