#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy, by .clang-tidy, over C++ sources; every finding fails.
#   ci/tidy.sh [BASE]      those that differ from a commit (HEAD without it), and are in the host build
#   ci/tidy.sh --all       all of them, which takes long
# It configures build/tidy, where every source has a compile command of its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! command -v clang-tidy-14 >/dev/null; then
  echo "tidy: clang-tidy-14 is missing; install it with: sudo apt-get install clang-tidy-14" >&2
  exit 5
fi
commands=build/tidy/compile_commands.json
mkdir -p build/tidy
cmake --preset host -B build/tidy -DTIGON_UNITY=OFF >build/tidy/configure.log 2>&1 ||
  { echo "tidy: configuring failed, see build/tidy/configure.log" >&2; exit 5; }
# Clang does not know these options of GCC.
sed -i -E 's/ -fno-(crossjumping|tree-tail-merge|gnu-unique|var-tracking|var-tracking-assignments)//g; s/ -gno-variable-location-views//g' $commands
base=${1:-HEAD}
if [ "$base" = --all ]; then
  mapfile -t files < <(git ls-files '*.cpp')
else
  git rev-parse --verify --quiet "$base^{commit}" >/dev/null || { echo "tidy: no commit '$base'" >&2; exit 2; }
  mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp'; git ls-files -o --exclude-standard '*.cpp')
fi
built=()
for file in "${files[@]}"; do
  if grep -qF "\"file\": \"$PWD/$file\"" $commands; then built+=("$file"); fi
done
[ ${#built[@]} = 0 ] || printf '%s\0' "${built[@]}" |
  xargs -0 -n 1 -P "${TIGON_JOBS:-$(nproc)}" clang-tidy-14 -p build/tidy --quiet 2>/dev/null ||
  { echo "tidy: the findings above" >&2; exit 1; }
echo "tidy: ${#built[@]} sources pass"
