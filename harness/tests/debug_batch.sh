#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# debug_batch.sh BUILD: `tigon debug` shows one thread of a kernel in its source's own lines. 77: no gdb here.
set -eu
command -v gdb >/dev/null || { echo "SKIPPED: no gdb; sudo apt-get install gdb"; exit 77; }
built=$(cmake --build "$1" --target tigon-debug-rms_norm 2>&1) || { echo "$built"; exit 1; }
source=$(dirname "$0")/../../kernels/norm/forward_rows.h
line=$(grep -n 'active) store(args.rstd.data' "$source" | cut -d: -f1)
[ -n "$line" ] || { echo "FAILED: no line of $source stores rstd"; exit 1; }
code=0
out=$("$1/bin/tigon" debug 'rms_norm/forward/fused/f32/T=9,H=33' --block 1,0,0 --thread 32 --line "forward_rows.h:$line" --batch 2>&1) || code=$?
[ "$code" = 0 ] || { echo "$out"; echo "FAILED: exit code $code"; exit 1; }
for want in "forward_rows.h:$line" 'row = 5' 'first = 0' 'h = 33' 'pieces = 33'; do
  echo "$out" | grep -qF "$want" || { echo "$out"; echo "FAILED: no '$want'"; exit 1; }
done
# What is not there is one line and its own exit code.
for words in '--block 99' '--thread 900'; do
  code=0
  # shellcheck disable=SC2086
  out=$("$1/bin/tigon" debug 'rms_norm/forward/fused/f32/T=9,H=33' $words --batch 2>&1) || code=$?
  echo "$out" | tail -1 | grep -q '^tigon: ' && [ "$code" = 4 ] || { echo "$out"; echo "FAILED: $words: exit code $code"; exit 1; }
done
