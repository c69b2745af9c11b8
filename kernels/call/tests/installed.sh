#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the library of a build folder under a prefix of its own and uses it from outside of the
# tree, as a stranger would: find_package, pkg-config, C and C++, shared and static; then looks at
# what the library shows and needs.
#   installed.sh BUILD_FOLDER EXAMPLES_FOLDER NAME     NAME: tigon or tigon-host
set -euo pipefail
build=$1 examples=$2 name=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() { echo "installed.sh: $*" >&2; exit 1; }
same() { [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"; }

cmake --install "$build" --prefix "$prefix" >"$work/install.log" || fail "$(cat "$work/install.log")"
cp -r "$examples" "$work/examples"
cmake -G Ninja -S "$work/examples" -B "$work/out" -DCMAKE_PREFIX_PATH="$prefix" >"$work/configure.log" 2>&1 ||
  fail "$(cat "$work/configure.log")"
cmake --build "$work/out" >"$work/build.log" 2>&1 || fail "$(cat "$work/build.log")"

if [ "$name" = tigon-host ]; then
  rows=$'0.3651 0.7303 2.1909 2.9212\n-1.4142 0.0000 2.8284 0.0000'
  loss='loss 0.8031, gradient of the first row 0.0283 0.1057 -0.1340'
  same rms_norm "$("$work/out/rms_norm")" "$rows"
  same cross_entropy "$("$work/out/cross_entropy")" "$loss"
  same cross_entropy_static "$("$work/out/cross_entropy_static")" "$loss"
  if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name "$name.pc")")
    export PKG_CONFIG_PATH
    library=$(dirname "$(find "$prefix" -name "lib$name.so")")
    read -ra flags < <(pkg-config --cflags --libs "$name")
    gcc "$examples/rms_norm.c" -o "$work/by_pkg_config" "${flags[@]}" -Wl,-rpath,"$library"
    same 'rms_norm by pkg-config' "$("$work/by_pkg_config")" "$rows"
  else
    fail "pkg-config is missing; it comes with: apt-get install pkgconf"
  fi
elif nvidia-smi -L >/dev/null 2>&1; then
  same softmax_cuda "$("$work/out/softmax_cuda")" 0.000999
fi

shared=$(find "$prefix" -name "lib$name.so") static=$(find "$prefix" -name "lib$name.a")
declared() { grep -E 'TIGON_API' "$prefix/include/tigon.h" | grep -o 'tigon_[a-z_]*(' | tr -d '(' | sort -u; }
same 'what the shared library exports' "$(nm -D --defined-only "$shared" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort -u)" "$(declared)"
same 'what the static library exports' "$(nm -g --defined-only "$static" | awk 'NF == 3 {print $3}' | sort -u)" "$(declared)"
needed=$(readelf -d "$shared" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libdl|librt|libpthread|ld-linux-x86-64)\.so' || true)
same 'what the shared library needs beside the system' "$needed" ""
echo "installed and used: $name"
