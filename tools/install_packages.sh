#!/usr/bin/env bash
# Installs the Debian packages of the given lists that are missing; does nothing when all are there.
#
# usage: tools/install_packages.sh LIST...      (one package a line, # begins a comment)
set -euo pipefail

missing=()
while read -r package; do
  status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$@")
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
  echo "This is not a Debian machine, so these packages (Debian's names) cannot be installed here;" \
       "going on as if they were there: ${missing[*]}" >&2
  exit 0
fi
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "Packages are missing and there is no sudo. As root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
"${apt[@]}" update --quiet
"${apt[@]}" install --quiet --yes --no-install-recommends "${missing[@]}"
