# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by push.sh, merge.sh and nightly.sh: runs the stages of a gate one after the other, keeps going after a
# failure, and ends with one exit code, a step summary and at most ten annotations. Prints one line a stage.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 5
TIGON=${TIGON:-./tigon}
out=${TIGON_OUT:-results/ci/$(basename "$0" .sh)}
rm -rf "$out"
mkdir -p "$out" || exit 5
codes=()
failed=()

# stage NAME COMMAND...: runs it, remembers its exit code, never stops the script.
stage() {
  local name=$1 code
  shift
  echo "== $name: $*"
  local start=$SECONDS
  "$@"
  code=$?
  codes+=("$code")
  printf '%s\t%s\t%s\n' "$name" "$code" "$((SECONDS - start))" >>"$out/stages.tsv"
  [ "$code" = 0 ] || failed+=("$name (exit $code)")
  [ "$code" != 130 ] || finish  # Ctrl-C is meant for all stages
  return 0
}

# The exit code of the whole: 130 when interrupted, else the lowest of 1 2 3 4 5, else 6, else whatever a stage said.
exit_code() {
  local wanted code
  for wanted in 130 1 2 3 4 5 6; do
    for code in ${codes[@]+"${codes[@]}"}; do
      [ "$code" = "$wanted" ] && { echo "$wanted"; return; }
    done
  done
  for code in ${codes[@]+"${codes[@]}"}; do
    [ "$code" = 0 ] || { echo 5; return; }
  done
  echo $(( ${#codes[@]} == 0 ? 4 : 0 ))
}

find_python() {
  local python
  for python in "${TIGON_PYTHON:-}" python3 /usr/bin/python3 "$root/build/python/bin/python3"; do
    [ -n "$python" ] || continue
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$python"; return; }
  done
  echo python3
}

# Ends the script: summary (into $GITHUB_STEP_SUMMARY where a CI service sets it), annotations, one line, exit code.
finish() {
  local code text="all stages passed"
  code=$(exit_code)
  if [ ${#failed[@]} != 0 ]; then
    text=$(printf ', %s' "${failed[@]}")
    text="failed: ${text#, }"
  fi
  "$(find_python)" ci/summarize.py "$out" --headline "$(basename "$0" .sh): $text" \
    --summary "${GITHUB_STEP_SUMMARY:-$out/summary.md}" ||
    echo "ci: the summary could not be written" >&2
  [ -n "${GITHUB_STEP_SUMMARY:-}" ] || cat "$out/summary.md"  # a CI service shows it as a page
  echo "ci: $text"
  exit "$code"
}
