#!/usr/bin/env bash
# Runs every fuzz target of a build for some seconds, from its seeds and what earlier runs found.
#
# usage: tools/run_fuzzers.sh BUILD_FOLDER SECONDS
#
# Seeds: tests/fuzz_corpora/TARGET. New inputs: BUILD_FOLDER/corpus/TARGET. An input that fails is kept as
# BUILD_FOLDER/corpus/TARGET-crash-...; the run then ends with an error after all targets had their turn.
set -euo pipefail
build=$1 seconds=$2
seeds=$(dirname "${BASH_SOURCE[0]}")/../tests/fuzz_corpora
shopt -s nullglob
failed=() count=0
for program in "$build"/*_fuzz; do
  target=$(basename "$program") count=$((count + 1))
  found=$build/corpus/$target
  mkdir -p "$found"
  echo "== $target, $seconds s"
  sources=("$found")
  [[ ! -d $seeds/$target ]] || sources+=("$seeds/$target")
  # Malformed input must not cost memory either: 1 GB is far above any documented cap.
  if ! "$program" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -print_final_stats=0 \
      -artifact_prefix="$build/corpus/$target-" "${sources[@]}" 2>&1 | tail -n 25; then
    failed+=("$target")
  fi
done
((count)) || { echo "no fuzz targets in $build" >&2; exit 1; }
if ((${#failed[@]})); then
  echo "failed: ${failed[*]} (inputs in $build/corpus)" >&2
  exit 1
fi
echo "$count fuzz targets, none failed"
