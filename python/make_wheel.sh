#!/usr/bin/env bash
# Builds a wheel that carries the libraries it needs, and runs the package's tests from it in an empty virtual
# environment (those of JAX, Orbax and MaxText apart, which are not installed there).
#
# usage: python/make_wheel.sh VENV [OUTPUT]      (from the repository's root; VENV has requirements/wheel.txt)
#
# The wheel is for the Python of VENV and for systems with at least this system's C library.
set -euo pipefail
venv=$(cd "$1" && pwd) output=${2:-dist}
python=$venv/bin/python
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT

# Compiled files stay in build-wheel/, so that the next wheel takes only what has changed.
options=(-Cbuild-dir=build-wheel/{wheel_tag})
if command -v ccache >/dev/null; then options+=(-Ccmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
PATH=$venv/bin:$PATH "$python" -m build --wheel --no-isolation --outdir "$raw" "${options[@]}" .
PATH=$venv/bin:$PATH "$python" -m auditwheel repair --wheel-dir "$output" "$raw"/maxport-*.whl
wheel=$(ls -t "$output"/maxport-*.whl | head -n 1)

"$python" -m venv "$raw/empty"
"$raw/empty/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" pytest==9.2.0
"$raw/empty/bin/maxport" --version
"$raw/empty/bin/python" -m pytest -q tests/python
echo "$wheel"
