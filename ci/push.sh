#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The gate of a push, on a machine without a GPU: builds, the test suite, the style of the sources, every kernel's quick
# checks on the host executor, and what can be said about speed without a GPU, against TIGON_BASE (a commit) when it is
# set. With TIGON_LONG the slow tests and those under sanitizers as well. ./tigon ci runs it.
#   ci/push.sh        TIGON_BASE=origin/main ci/push.sh
# shellcheck source-path=SCRIPTDIR source=stages.sh
source "$(dirname "${BASH_SOURCE[0]}")/stages.sh"
stage test "$TIGON" --device host test
stage style "${TIGON_STYLE:-ci/style.sh}" ${TIGON_BASE:+"$TIGON_BASE"}
stage check "$TIGON" --device host check --quick --out "$out/check" --junit "$out/check.xml"
[ -z "${TIGON_BASE:-}" ] || stage static "$TIGON" --device host gate --static --base "$TIGON_BASE" --out "$out/static"
if [ -n "${TIGON_LONG:-}" ]; then
  stage long "$TIGON" --device host test --long
  stage sanitize "$TIGON" --device host test --sanitize
fi
finish
