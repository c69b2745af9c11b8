// SPDX-License-Identifier: Apache-2.0
// What the way through tigon.h costs on top of the typed launcher: a call of no rows, which ends
// before the launch, and the workspace of the longest signature.
#include <benchmark/benchmark.h>

#include "kernels/call/typed.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/rms_norm/rms_norm.h"

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

// A workspace does not depend on addresses.
linear_cross_entropy::ForwardBackward<BF16> longest() {
  const bf16* const nowhere = nullptr;
  linear_cross_entropy::ForwardBackward<BF16> args;
  args.x = view(nowhere, 4096, 4096);
  args.w = view(nowhere, 128256, 4096);
  return args;
}

void typed_long(benchmark::State& state) {
  const auto args = longest();
  for (auto _ : state) benchmark::DoNotOptimize(linear_cross_entropy::workspace(args));
}
BENCHMARK(typed_long);

void erased_long(benchmark::State& state) {
  const auto args = longest();
  const Call call(args);
  const tigon_op* op = op_of<linear_cross_entropy::ForwardBackward<BF16>>();
  for (auto _ : state) benchmark::DoNotOptimize(tigon_workspace(op, call.get()));
}
BENCHMARK(erased_long);

}  // namespace
}  // namespace tigon
