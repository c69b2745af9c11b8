// SPDX-License-Identifier: Apache-2.0
// Contract of vocab_parallel_log_prob: that of log_prob.
#include "reference/vocab_parallel_log_prob.h"

#include "harness/ops/implementations.h"
#include "harness/ops/loss_plan.h"
#include "harness/ops/over_ranks.h"

namespace tigon::log_prob {
OpSpec contract();
}

namespace tigon::vocab_parallel_log_prob {

namespace {

// Some ranks have no classes of a few.
const Sharding kSharding = {{{"logits", 1}, {"dlogits", 1}}, 0};

std::vector<Told> told() {
  return {{"statistics", {kStatistics}},
          {"moment", {}, [](const Bound& all) { return is_given(all, "entropy"); }}};
}

}  // namespace

OpSpec contract() {
  OpSpec op = log_prob::contract();
  op.name = "vocab_parallel_log_prob";
  op.summary = kFormula;
  op.model_part = {};  // one device has all ranks here, and no model is trained so
  op.axes.back().check = {8193, 7, 2, 9, 4099, 1, 8};
  for (const char* ranks : {"1", "8"}) op.option_sets.push_back({{kRanksOption, ranks}});
  op.option_sets.push_back(with_entropy({{kRanksOption, "8"}, {"temperature", "0.7"}}));
  op.passes = {over_shards(op.passes[0],
                           forward_of_ranks(fused<Statistics>(), fused<Join>(), kSharding, told())),
               over_shards(op.passes[1], each_rank(fused<Backward>(), kSharding))};
  return op;
}

}  // namespace tigon::vocab_parallel_log_prob
