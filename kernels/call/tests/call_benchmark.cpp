// SPDX-License-Identifier: Apache-2.0
// What the way through tigon.h costs on top of the typed launcher: a call of no rows, which ends
// before the launch, and the workspace of the op with the most options.
#include <benchmark/benchmark.h>

#include "kernels/call/typed.h"
#include "kernels/rms_norm/rms_norm.h"
#include "most_options.h"

namespace tigon {
namespace {

rms_norm::Forward<BF16> no_rows() {
  static bf16 memory[4096];
  static float rstd[1];
  rms_norm::Forward<BF16> args;
  args.x = view(static_cast<const bf16*>(memory), 0, 4096);
  args.w = view(static_cast<const bf16*>(memory), 4096);
  args.y = view(memory, 0, 4096);
  args.rstd = view(rstd, 0);
  return args;
}

void typed(benchmark::State& state) {
  const auto args = no_rows();
  for (auto _ : state) benchmark::DoNotOptimize(rms_norm::forward(args, nullptr).ok());
}
BENCHMARK(typed);

void erased(benchmark::State& state) {
  const auto args = no_rows();
  const Call call(args);
  const tigon_op* op = op_of<rms_norm::Forward<BF16>>();
  for (auto _ : state) benchmark::DoNotOptimize(tigon_run(op, call.get(), nullptr).code);
}
BENCHMARK(erased);

using Longest = call::MostOptions<BF16>;

void typed_long(benchmark::State& state) {
  const auto args = call::every_tensor_given<Longest>(4096);
  for (auto _ : state) benchmark::DoNotOptimize(workspace(args));
}
BENCHMARK(typed_long);

void erased_long(benchmark::State& state) {
  const auto args = call::every_tensor_given<Longest>(4096);
  const Call call(args);
  const tigon_op* op = op_of<Longest>();
  for (auto _ : state) benchmark::DoNotOptimize(tigon_workspace(op, call.get()));
}
BENCHMARK(erased_long);

}  // namespace
}  // namespace tigon
