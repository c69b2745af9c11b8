#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The nightly measurement, on a machine with a GPU: the full run, the gate against itself (A/A), the history, the
# dashboard; the library as a release has it, for every GPU; every header alone, five minutes of fuzzing, mutants of every
# op, drawn by the date, and the host's tests under sanitizers. TIGON_HISTORY is a folder that outlives the job; each
# night adds two files to it. The site is $out/site.
#   TIGON_HISTORY=/var/lib/tigon/history ci/nightly.sh
# shellcheck source-path=SCRIPTDIR source=stages.sh
source "$(dirname "${BASH_SOURCE[0]}")/stages.sh"
history=${TIGON_HISTORY:-results/history}
mkdir -p "$history" || exit 5

# keep NAME: adds the records of stage NAME to the history under their run id, even when the stage failed: a failure is
# part of the history. Never overwrites.
# shellcheck disable=SC2317  # called by stage
keep() {
  local file=$out/$1/records.jsonl id
  [ -s "$file" ] || { echo "no records in $out/$1" >&2; return 4; }
  id=$(head -1 "$file" | sed -n 's/.*"run_id": *"\([^"]*\)".*/\1/p')
  [ -n "$id" ] || { echo "$file names no run" >&2; return 4; }
  [ ! -e "$history/$id.jsonl" ] || { echo "$history/$id.jsonl is there already" >&2; return 4; }
  cp "$file" "$history/.$id.part" && mv "$history/.$id.part" "$history/$id.jsonl"
}

# shellcheck disable=SC2317  # called by stage
release() { cmake --preset release && cmake --build --preset release; }

stage run "$TIGON" --device cuda run --full --out "$out/run"
stage keep-run keep run
stage aa "$TIGON" --device cuda gate --aa --out "$out/aa"
stage keep-aa keep aa
stage junit "$TIGON" export "$out/run" --format junit -o "$out/check.xml"
stage dashboard "$TIGON" dashboard "$history" --out "$out/site" --commit-url "${TIGON_COMMIT_URL:-}"
stage release release
stage headers ci/headers.sh --all
stage fuzz ci/fuzz.sh 300
stage sample "$TIGON" --device host mutants --sample 25 --score 97 --seed "$(date +%Y%m%d)" --out "$out/sample"
stage sanitize "$TIGON" --device host test --sanitize
finish
