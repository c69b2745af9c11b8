#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a header does not compile alone, in the host build. Left out: halves that one other header includes
# (*_cuda.h, *_host.h), what only the CUDA build includes, and headers of tests and of what is tried.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
check() {
  g++ -std=c++20 -fsyntax-only -Wall -Wextra -I. -isystem /usr/include/eigen3 -x c++ - <<<"#include \"$1\"" 2>&1 |
    sed "s|^|$1: |" | head -5 | grep . && { echo "headers: $1 does not compile alone"; return 1; }
  return 0
}
export -f check
# shellcheck disable=SC2016  # $0 is for bash -c
git ls-files '*.h' | grep -vE '_(cuda|host)\.h$|/cuda/|/tests/|/try/|^reference/naive/(cudnn_.*|index)\.h$' |
  xargs -n 1 -P "${TIGON_JOBS:-$(nproc)}" bash -c 'check "$0"'
echo "headers: every header compiles alone"
