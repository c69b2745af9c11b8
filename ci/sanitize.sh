#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compute-sanitizer over the tiny cases of every fused kernel, on a machine with a GPU: memcheck, racecheck, initcheck and
# synccheck for each op and element type, a process each and several at a time.
#   ci/sanitize.sh
#   ci/sanitize.sh --tier check --exclude '[VH]=[0-9]{5,}'    options of ./tigon check choose other cases
#   TIGON_DTYPES='f16 f32' TIGON_TOOLS=racecheck ci/sanitize.sh      these element types and tools only
# What cuBLASLt launches is not judged: kernels named cutlass are not looked at, hazards inside those named nvjet are counted
# apart. Exit code: 1 an error, a hazard or a wrong case, 4 no case, 5 nothing to run it with. The logs are in
# results/ci/sanitize.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 5
program=${TIGON_PROGRAM:-build/cuda/bin/tigon}  # one process of the launcher for each would build as often
out=${TIGON_OUT:-results/ci/sanitize}
cases=("$@")
[ $# != 0 ] || cases=(--tier tiny)

sanitizer=$(command -v compute-sanitizer || command -v /usr/local/cuda/bin/compute-sanitizer) || {
  echo "ci: compute-sanitizer is not in PATH nor in /usr/local/cuda/bin; it comes with the CUDA Toolkit" >&2
  exit 5
}
ops=$("${TIGON:-./tigon}" --device cuda list | awk '$3 == "fused" { print $1 }' | uniq)
[ -n "$ops" ] || { echo "ci: ./tigon --device cuda list shows no fused kernel" >&2; exit 5; }
rm -rf "$out"
mkdir -p "$out" || exit 5

# hazards_of_cublas LOG: how many. A hazard is one of shared memory, so both its accesses are in one kernel.
hazards_of_cublas() { grep -c 'Race reported between .* access at nvjet_' "$1"; }

# found LOG: what the tool displayed, less what is cuBLASLt's; without its summary, 1.
found() {
  local displayed
  displayed=$(sed -n 's/^=* *\(ERROR\|RACECHECK\) SUMMARY: \([0-9]*\) .*/\2/p' "$1" | tail -1)
  [ -n "$displayed" ] && echo $((displayed - $(hazards_of_cublas "$1"))) || echo 1
}

# sanitize TOOL OP TYPE: one line, and a line of $out/codes.
sanitize() {
  local name=$1-$2-$3 flags=() code
  # Else it says that its table of barriers overflows, and launches of cross_entropy in clusters fail.
  [ "$1" != synccheck ] || flags=(--num-cuda-barriers 4096)
  # The names that are looked at cannot be given instead: without nvjet's kernels racecheck stops on an error of its own.
  "$sanitizer" --tool "$1" ${flags[@]+"${flags[@]}"} --target-processes all \
    --kernel-name-exclude kernel_substring=cutlass \
    "$program" check --op "$2" --dtype "$3" --impl fused --jobs 1 --shrink 0 --out "$out/$name" "${cases[@]}" \
    >"$out/$name.log" 2>&1
  code=$?
  [ $code = 4 ] || { [ $code = 0 ] && [ "$(found "$out/$name.log")" = 0 ]; } || code=1
  echo $code >>"$out/codes"
  printf '%-6s %-10s %-22s %-5s %s; %s; %s of cuBLASLt\n' "$([ $code = 1 ] && echo FAILED || echo ok)" "$1" "$2" "$3" \
    "$(grep -E '[0-9]+ passed, [0-9]+ failed|^nothing' "$out/$name.log" | tail -1)" \
    "$(sed -n 's/^=* *\(.*SUMMARY: .*\)/\1/p' "$out/$name.log" | tail -1)" "$(hazards_of_cublas "$out/$name.log")"
  # The first finding, with its kernel.
  [ $code = 0 ] || [ $code = 4 ] || sed -n 's/^=\{3,\} *//p' "$out/$name.log" |
    grep -vE '^$|COMPUTE-SANITIZER|SUMMARY|access at nvjet_' | head -3
}

# 10 GiB of the GPU for each process, because a tool that finds no memory counts an error.
fit=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null | awk '{ print int($1 / 10240); exit }')
jobs=$(($(nproc) * 3 / 4))
[ -z "$fit" ] || [ "$jobs" -le "$fit" ] || jobs=$fit
for type in ${TIGON_DTYPES:-bf16 f16 f32}; do
  for op in $ops; do
    for tool in ${TIGON_TOOLS:-racecheck initcheck memcheck synccheck}; do
      while [ "$(jobs -rp | wc -l)" -ge $((jobs > 0 ? jobs : 1)) ]; do wait -n; done
      sanitize "$tool" "$op" "$type" &
    done
  done
done
wait
grep -qx 1 "$out/codes" && { echo "ci: failed; see $out" >&2; exit 1; }
grep -qx 0 "$out/codes" || { echo "ci: no case was selected" >&2; exit 4; }
echo "ci: no error and no hazard"
