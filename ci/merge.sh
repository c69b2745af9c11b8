#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The gate before a merge, on a machine with a GPU: all checks on the GPU, then base and head in interleaved pairs of
# processes. TIGON_BASE is the commit to compare with; TIGON_BUDGET bounds the time of the gate, its builds included
# (default 30m). An inconclusive gate is exit code 6 and fails the job: run it again, give it more time, or merge knowingly.
#   TIGON_BASE=origin/main ci/merge.sh
# shellcheck source-path=SCRIPTDIR source=stages.sh
source "$(dirname "${BASH_SOURCE[0]}")/stages.sh"
if [ -z "${TIGON_BASE:-}" ]; then
  echo "ci: TIGON_BASE is not set; name the commit to compare with, e.g. TIGON_BASE=origin/main ci/merge.sh" >&2
  exit 2
fi
stage check "$TIGON" --device cuda check --out "$out/check" --junit "$out/check.xml"
stage gate "$TIGON" --device cuda gate --base "$TIGON_BASE" --budget "${TIGON_BUDGET:-30m}" --out "$out/gate"
finish
