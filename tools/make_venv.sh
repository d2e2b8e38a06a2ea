#!/usr/bin/env bash
# Makes a Python virtual environment with pinned packages and marks it ready; starts over when it is half made.
#
# usage: tools/make_venv.sh FOLDER REQUIREMENTS OLDEST NEWEST      (Python versions, e.g. 3.11 3.13)
#
# Takes the `python3` of the PATH if its version lies in the range, else the newest python3.N that does, also one
# that pyenv installed. MAXPORT_PYTHON names another.
set -euo pipefail
folder=$1 requirements=$2 oldest=$3 newest=$4

serves() {  # the interpreter runs, its version is in the range and it can make environments
  "$1" - "$oldest" "$newest" <<'PYTHON' 2>/dev/null
import ensurepip, sys, venv
low, high = (tuple(map(int, v.split("."))) for v in sys.argv[1:])
sys.exit(not low <= sys.version_info[:2] <= high)
PYTHON
}

python=
candidates=("${MAXPORT_PYTHON:-}" python3)
for ((minor = ${newest#3.}; minor >= ${oldest#3.}; --minor)); do
  candidates+=("python3.$minor" "/usr/bin/python3.$minor")
  for found in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor"*/bin/python3; do candidates+=("$found"); done
done
for candidate in "${candidates[@]}"; do
  if [[ -n $candidate ]] && serves "$candidate"; then
    python=$candidate
    break
  fi
done
if [[ -z $python ]]; then
  echo "$folder needs a Python between $oldest and $newest with its venv module; none was found." >&2
  echo "Install one (on Debian: apt-get install python3-venv; another version: pyenv install ${newest})," >&2
  echo "or name one: make MAXPORT_PYTHON=/path/to/python3 ..." >&2
  exit 1
fi

echo "Making $folder with $("$python" --version) ($requirements)"
rm -rf "$folder"
"$python" -m venv "$folder"
pip=("$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 5 --timeout 60)
"${pip[@]}" --requirement "$requirements" || { sleep 5 && "${pip[@]}" --requirement "$requirements"; }
touch "$folder/.ready"
