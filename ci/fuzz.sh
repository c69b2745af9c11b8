#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes the parsers of records and of axes and cases with libFuzzer, under AddressSanitizer and UBSan.
#   ci/fuzz.sh [SECONDS]     of each of the two targets, which run side by side; 60 without it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-60}
if ! command -v clang++-14 >/dev/null; then
  echo "fuzz: clang++-14 is missing; install it with: sudo apt-get install clang-14 libclang-rt-14-dev" >&2
  exit 5
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() {  # build TARGET SOURCE...
  local target=$1
  shift
  clang++-14 -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -DFMT_HEADER_ONLY \
    -I. "harness/tests/fuzz/$target.cpp" "$@" -o "$work/$target"
}

# fuzz TARGET SEED...: seeds are texts that are right.
fuzz() {
  local target=$1 i=0
  shift
  mkdir "$work/$target.seeds"
  for seed in "$@"; do i=$((i + 1)); printf '%s' "$seed" >"$work/$target.seeds/$i"; done
  if ! "$work/$target" -max_total_time="$seconds" -seed=42 -max_len=2000 -timeout=5 -rss_limit_mb=1024 \
      -print_final_stats=1 -artifact_prefix="$work/$target." "$work/$target.seeds" >"$work/$target.log" 2>&1; then
    tail -40 "$work/$target.log" >&2
    echo "fuzz: $target failed; the input in base64:" >&2
    cat "$work/$target".{crash,timeout,oom,leak}-* 2>/dev/null | base64 -w0 >&2 || true
    exit 1
  fi
  echo "fuzz: $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$target.log") inputs in $seconds s, no fault"
}

# all PID...: waits for all of them; fails when one has failed.
all() {
  local code=0
  for job in "$@"; do wait "$job" || code=1; done
  return "$code"
}

cases=(harness/run/cases/{case,option_value,parse_case}.cpp)
build fuzz_names harness/cli/options/axis_values.cpp "${cases[@]}" harness/spec/op_spec.cpp &
first=$!
build fuzz_records harness/json/json.cpp harness/record/record_reader.cpp harness/run/process/wire.cpp \
  "${cases[@]}" harness/judge/verdict.cpp harness/spec/op_spec.cpp &
all $first $!
fuzz fuzz_names '[pow2]=[4:10:2]' '=[1k,2Ki,3M]' '=[5:50:5]' 'T=3,H=8,w=absent,casting=gemma,eps=1e-5,inputs=normal,seed=7,prop=rerun' \
  'op/forward/fused/f32/T=3,H=8,shift=1,gap=2,prop=rerun' &
first=$!
fuzz fuzz_records \
  '{"record":"check","case_id":"op/forward/fused/f32/T=3,H=8,inputs=normal,seed=42","verdict":"passed","outputs":[{"name":"y","error_over_budget":0.5}],"seconds_s":0.1}' \
  '{"record":"end","passed":1,"sum":"00000000"}' '{"record":""}' \
  '{"id":"op/forward/fused/f32/T=3,H=8","executor":"fast","verdict":"passed","reason":"","seconds":1,"last":false,"outputs":[{"name":"y","error":"nan","rms":1,"bias":0,"at":[1,2],"got":1,"want":"inf","elements":3,"failing":0}]}' \
  '{"id":"op/forward/fused/f32/T=3,H=8","save":"","trace":true}' \
  '{"id":"op/forward/fused/f32/T=3,H=8","verdict":"passed","reason":"","kernels":[{"name":"k","launches":1,"bytes_loaded_bytes":1,"bytes_stored_bytes":1,"requests":1,"sectors":1,"bank_conflicts":0,"barriers":0,"atomics":0}]}' &
all $first $!
