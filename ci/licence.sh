#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a tracked source does not name its licence. Records and page templates are no sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t missing < <(git grep -L 'SPDX-License-Identifier: Apache-2\.0' -- tigon .ci/run '*.h' '*.c' '*.cpp' '*.cu' '*.py' '*.sh' \
  '*.cmake' '*.yml' '*.toml' '*.css' '*.js' '*.inc' '*CMakeLists.txt' '*Containerfile' .clangd '*.h.in' '*.hpp.in' '*.cpp.in' \
  '*.cu.in' '*.cmake.in' '*.faults' '*.equivalent' ':!reports/recorded' || true)
[ ${#missing[@]} = 0 ] || { printf '%s: its first lines lack "SPDX-License-Identifier: Apache-2.0"\n' "${missing[@]}"; exit 1; }
echo "licence: every source names it"
