// SPDX-License-Identifier: Apache-2.0
// Large cases by sampled rows and slices.
#include "harness/run/judging/huge.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/run/executor.h"
#include "harness/run/judging/row_slices.h"
#include "harness/run/judging/sampled_rows.h"
#include "harness/run/memory/arena.h"
#include "harness/run/memory/stop.h"

namespace tigon {

namespace {

// The tensors must fit, and a host is not for large ones.
void require_room(const HugeCase& huge, const HugeLimits& limits) {
  double bytes = 0;
  const Binding binding = binding_of(huge.c, *huge.op, *huge.pass);
  for (const TensorInfo& t : huge.pass->tensors) {
    double size = static_cast<double>(size_of(t.dtype.at(huge.c.dtype)));
    for (const Expr& e : t.shape) size *= e(binding);
    bytes += size;
  }
  if (this_executor() != "cuda" && bytes > limits.host_bytes)
    throw Stop{Verdict::kUnsupported,
               fmt::format("needs a GPU: {:.1f} GiB of tensors", bytes / 0x1p30)};
  if (bytes > static_cast<double>(device_free_bytes()))
    throw Stop{Verdict::kOom, fmt::format("{:.1f} GiB of tensors do not fit", bytes / 0x1p30)};
}

// Runs the pass before, whose saved tensors are inputs of this one. The same implementation runs
// it: its huge cases are checked on their own.
void take_saved(HugeCase* huge, TiledLaunch* whole) {
  if (huge->pass->inputs_from.empty()) return;
  const Pass* source = find_pass(*huge->op, huge->pass->inputs_from);
  const Implementation* implementation =
      source ? find_implementation(*source, huge->c.impl) : nullptr;
  if (!implementation) throw std::logic_error("no pass to take saved inputs from");
  TiledLaunch before(huge->c, *huge->op, *source, huge->rows);
  before.plan(huge->op->inputs.front(), huge->c.seed);
  before.fill(kPoisons[0]);
  before.run(*implementation);
  for (TiledTensor& t : whole->tensors())
    if (const TiledTensor* saved = before.find(t.info().name);
        saved && t.is_input() && saved->info().role == Role::kSaved) {
      huge->saved[t.info().name] = saved->download(0, saved->rows());
      t.upload(0, huge->saved[t.info().name]);
    }
}

bool rows_are_independent(const Pass& pass) {
  return std::any_of(pass.properties.begin(), pass.properties.end(),
                     [](const Property& p) { return p.name == "row_independence"; });
}

bool has_sums(const TiledLaunch& whole) {
  return std::any_of(whole.tensors().begin(), whole.tensors().end(),
                     [](const TiledTensor& t) { return t.is_output() && !t.row_wise(); });
}

// Runs the case again with an upstream gradient that is 0 outside of the sample: sums over all rows
// are then sums over the sample.
void run_on_sample_only(const HugeCase& huge, const SampledRows& sample, TiledLaunch* whole) {
  TiledTensor* upstream = whole->find(huge.pass->upstream);
  if (!upstream || !upstream->row_wise())
    throw Stop{Verdict::kUnsupported,
               "outputs that are sums over rows need an upstream gradient with rows"};
  upstream->zero_rows_except(sample.rows());
  whole->fill(kPoisons[1]);
  for (const auto& [name, bytes] : huge.saved) whole->find(name)->upload(0, bytes);
  whole->run(*huge.implementation);
}

}  // namespace

void check_huge(const Case& c, const HugeLimits& limits, CheckResult* result) {
  HugeCase huge(c);
  require_room(huge, limits);
  TiledLaunch whole(c, *huge.op, *huge.pass, huge.rows);
  whole.plan(huge.op->inputs.front(), c.seed);
  whole.fill(kPoisons[0]);
  take_saved(&huge, &whole);
  whole.run(*huge.implementation, &result->seconds);

  Judgement judgement;
  const auto judge = [&](std::vector<Comparison> comparisons) {
    for (Comparison& comparison : comparisons) {
      judgement.add(comparison);
      result->outputs.push_back(std::move(comparison.result));
    }
  };
  const SampledRows sample(huge, limits, whole);
  sample.require_inputs_unchanged();
  judge(sample.compare_rows());
  // What the oracle says of a wrong row says more than that a slice differs.
  if (rows_are_independent(*huge.pass) && !is_failure(judgement.verdict))
    require_equal_slices(huge, limits, whole);
  if (has_sums(whole)) {
    run_on_sample_only(huge, sample, &whole);
    judge(sample.compare_sums());
  }
  result->verdict = judgement.verdict;
  result->reason = judgement.reason;
}

}  // namespace tigon
