#!/usr/bin/env bash
# Fails when a CI template does not fit the published schema of its service, or when actionlint, where installed, objects.
# The schemas come with check-jsonschema, installed into build/ci-lint when it is not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
checker=$(command -v check-jsonschema || true)
if [ -z "$checker" ]; then
  checker=build/ci-lint/bin/check-jsonschema
  if [ ! -x "$checker" ]; then
    python3 -m venv build/ci-lint && build/ci-lint/bin/pip install -q check-jsonschema ||
      { echo "lint: check-jsonschema cannot be installed; install it with: pip install check-jsonschema" >&2; exit 5; }
  fi
fi
"$checker" --builtin-schema vendor.github-workflows ci/github/*.yml
"$checker" --builtin-schema vendor.gitlab-ci --data-transform gitlab-ci ci/gitlab/*.yml
if command -v actionlint >/dev/null; then actionlint ci/github/*.yml; else echo "lint: actionlint is not installed; the schemas were checked"; fi
for script in ci/*.sh; do bash -n "$script"; done
echo "lint: every template fits its service"
