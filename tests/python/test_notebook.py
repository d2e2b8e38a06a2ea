"""docs/python.ipynb: its cells run in order, on a golden's small model."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]

# Cells share one namespace, as in a kernel; a shown figure is counted instead of drawn on a screen.
RUN = """
import json, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

figures = []

def show():
  plt.gcf().canvas.draw()
  figures.append(len(plt.gcf().axes[0].patches) + len(plt.gcf().axes[0].lines))
  plt.close("all")

plt.show = show
namespace = {}
for number, cell in enumerate(json.load(open(sys.argv[1]))["cells"]):
  if cell["cell_type"] == "code":
    exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)
print(json.dumps({"figures": figures, "shares": namespace["shares"], "report": namespace["report"]}))
"""


def test_the_notebook_runs(tmp_path):
  environment = {**os.environ, "MODEL": str(ROOT / "tests" / "data" / "goldens" / "llama3.1-8b" / "hf"),
                 "OUTPUT": str(tmp_path / "out")}
  run = subprocess.run([sys.executable, "-c", RUN, ROOT / "docs" / "python.ipynb"], env=environment, capture_output=True,
                       text=True, check=False)
  assert run.returncode == 0, run.stderr
  found = json.loads(run.stdout.splitlines()[-1])
  assert found["figures"] == [found["report"]["leaves"], 1]
  assert found["shares"][-1] == 1.0


def test_the_notebook_is_stored_without_outputs():
  notebook = json.loads((ROOT / "docs" / "python.ipynb").read_text())
  assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
  assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
