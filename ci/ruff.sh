#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the Python sources with ruff, by ruff.toml. Debian 12 has no ruff: where none is in the PATH it is installed
# with pip into build/ci-lint, unless TIGON_INSTALL is no. Exit code 5: it cannot be had, so nothing was checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ruff=$(command -v ruff || true)
if [ -z "$ruff" ]; then
  ruff=build/ci-lint/bin/ruff
  if [ ! -x $ruff ]; then
    [ "${TIGON_INSTALL:-yes}" = yes ] || { echo "ruff: not installed; install it with: pip install ruff" >&2; exit 5; }
    echo "ruff: installing it with pip into build/ci-lint" >&2
    { python3 -m venv build/ci-lint && build/ci-lint/bin/pip install -q --disable-pip-version-check "ruff<1"; } >&2 ||
      { echo "ruff: cannot be installed here; install it with: pip install ruff" >&2; exit 5; }
  fi
fi
"$ruff" check --no-cache --quiet "$@"
echo "ruff: every Python source passes"
