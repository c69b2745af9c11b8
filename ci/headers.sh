#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a header does not compile alone, in the host build.
#   ci/headers.sh [--all]    without --all, only headers that no source includes first
# Left out: halves that one other header includes (*_cuda.h, *_host.h), what only the CUDA build includes, and headers of
# tests and of what is tried. A source that includes a header first is the same trial, where it is compiled alone; a
# build joins sources (TIGON_UNITY), so ci/nightly.sh asks for all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1-}" in
  "") chosen=first_in_no_source which="every header that no source includes first" ;;
  --all) chosen=headers which="every header" ;;
  *) echo "headers: unknown argument '$1'; it takes --all" >&2; exit 2 ;;
esac
check() {
  g++ -std=c++20 -fsyntax-only -Wall -Wextra -I. -isystem /usr/include/eigen3 -x c++ - <<<"#include \"$1\"" 2>&1 |
    sed "s|^|$1: |" | head -5 | grep . && { echo "headers: $1 does not compile alone"; return 1; }
  return 0
}
export -f check

headers() { git ls-files '*.h' | grep -vE '_(cuda|host)\.h$|/cuda/|/tests/|/try/|^reference/naive/(cudnn_.*|index)\.h$' | sort; }

# The headers that sources of the host build include first.
# shellcheck disable=SC2016  # $0 is for awk
included_first() {
  git ls-files '*.cpp' '*.cu' | grep -vE '_cuda\.cpp$' |
    xargs awk 'FNR == 1 { found = 0 } !found && /^#include/ { found = 1; if (split($0, part, "\"") == 3) print part[2] }' | sort -u
}

# shellcheck disable=SC2317  # called as $chosen
first_in_no_source() { comm -23 <(headers) <(included_first); }

# shellcheck disable=SC2016  # $0 is for bash -c
"$chosen" | xargs -n 1 -P "${TIGON_JOBS:-$(nproc)}" bash -c 'check "$0"'
echo "headers: $which compiles alone"
