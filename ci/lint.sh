#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a CI template does not fit the published schema of its service, or when actionlint or shellcheck, where
# installed, object. The schemas come with check-jsonschema, installed into build/ci-lint when it is not there.
# Exit code 5: the schemas could not be had, so the templates were not checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_checker() {
  local folder=build/ci-lint
  command -v check-jsonschema && return
  if [ ! -x $folder/bin/check-jsonschema ]; then
    [ "${TIGON_INSTALL:-yes}" = yes ] || return
    echo "lint: installing check-jsonschema with pip into $folder" >&2
    python3 -m venv $folder >&2 || return
    $folder/bin/pip install -q check-jsonschema >&2 || return
  fi
  echo $folder/bin/check-jsonschema
}

for script in ci/*.sh; do bash -n "$script"; done
missing() { echo "lint: $1 is not installed; $2 only"; }
if command -v shellcheck >/dev/null; then shellcheck -x ci/*.sh; else missing shellcheck syntax; fi
if command -v actionlint >/dev/null; then actionlint ci/github/*.yml; else missing actionlint schema; fi
checker=$(find_checker) ||
  { echo "lint: check-jsonschema cannot be installed; install it with: pip install check-jsonschema" >&2; exit 5; }
"$checker" --builtin-schema vendor.github-workflows ci/github/*.yml
"$checker" --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci ci/gitlab/*.yml
echo "lint: every template fits its service"
