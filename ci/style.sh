#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Layout, layers, cited pages, licence, ruff, clang-tidy: what pre-commit and CI ask of the sources.
#   ci/style.sh [BASE]     clang-tidy reads the files that differ from BASE (a commit; HEAD without it)
# A tool that is not there is named and its part left out; what it would have said is then not known.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 5
code=0
try() {  # try TOOL COMMAND...: runs it where the tool is there
  local tool=$1
  shift
  if ! command -v "$tool" >/dev/null; then
    echo "style: $tool is not installed: $1 is left out; sudo apt-get install $tool"
    return
  fi
  "$@" || code=1
}
python3 ci/layers.py || code=1
python3 ci/pages.py || code=1
ci/licence.sh || code=1
try clang-format-14 ci/format.sh
ci/ruff.sh
case $? in 0) ;; 5) echo "style: ruff is left out" ;; *) code=1 ;; esac
try clang-tidy-14 ci/tidy.sh "${1:-HEAD}"
exit "$code"
