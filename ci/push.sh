#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The gate of a push, on a machine without a GPU: builds, the test suite, the style of the sources, every kernel's quick
# checks on the host executor, and against TIGON_BASE (a commit), when it is set, what can be said about speed without a
# GPU and mutants of the kernels' files that differ. With TIGON_LONG the slow tests and those under sanitizers as well.
# ./tigon ci runs it.
#   ci/push.sh        TIGON_BASE=origin/main ci/push.sh
# shellcheck source-path=SCRIPTDIR source=stages.sh
source "$(dirname "${BASH_SOURCE[0]}")/stages.sh"

# Another draw for every commit. That no kernel's file differs (4) is no failure.
# shellcheck disable=SC2317  # called by stage
sample() {
  local code=0 head
  head=$(git rev-parse HEAD)
  "$TIGON" --device host mutants --sample 100 --score 97 --seed "$((16#${head:0:8}))" --changed "$TIGON_BASE" \
    --out "$out/sample" || code=$?
  [ "$code" = 4 ] || return "$code"
}

stage test "$TIGON" --device host test
stage style "${TIGON_STYLE:-ci/style.sh}" ${TIGON_BASE:+"$TIGON_BASE"}
stage check "$TIGON" --device host check --quick --out "$out/check" --junit "$out/check.xml"
if [ -n "${TIGON_BASE:-}" ]; then
  stage static "$TIGON" --device host gate --static --base "$TIGON_BASE" --out "$out/static"
  stage sample sample
fi
if [ -n "${TIGON_LONG:-}" ]; then
  stage long "$TIGON" --device host test --long
  stage sanitize "$TIGON" --device host test --sanitize
fi
finish
