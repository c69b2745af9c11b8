#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a tracked C++ or CUDA source differs from what clang-format makes of it. `ci/format.sh --fix` formats.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(--dry-run --Werror)
[ "${1:-}" = --fix ] && mode=(-i)
git ls-files -z '*.h' '*.cpp' '*.cu' | xargs -0 clang-format-14 "${mode[@]}"
echo "format: every source is formatted"
