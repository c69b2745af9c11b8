// SPDX-License-Identifier: Apache-2.0
// Contract of vocab_parallel_cross_entropy: that of cross_entropy.
#include "reference/vocab_parallel_cross_entropy.h"

#include "harness/ops/implementations.h"
#include "harness/ops/loss_plan.h"
#include "harness/ops/over_ranks.h"

namespace tigon::cross_entropy {
OpSpec contract();
}

namespace tigon::vocab_parallel_cross_entropy {

namespace {

// Some ranks have no classes of a few.
const Sharding kSharding = {{{"logits", 1}}, 0};

}  // namespace

OpSpec contract() {
  OpSpec op = cross_entropy::contract();
  op.name = "vocab_parallel_cross_entropy";
  op.summary = kFormula;
  op.model_part = {};  // one device has all ranks here, and no model is trained so
  op.axes.back().check = {8193, 7, 2, 9, 4099, 1, 8};
  // More than a batch of loads for each thread of a rank.
  op.further_shapes = {{{"T", 2}, {"V", 70001}}};
  op.further_shapes_of_one_type.clear();
  op.further_inputs.clear();
  for (const char* ranks : {"1", "8"}) op.option_sets.push_back({{kRanksOption, ranks}});
  op.option_sets.push_back(with_results({{kRanksOption, "8"}, {"reduction", "none"}}));
  op.passes = {over_shards(op.passes[0], forward_of_ranks(fused<Statistics>(), fused<Join>(),
                                                          kSharding, told_for_loss())),
               over_shards(op.passes[1], each_rank(fused<Backward>(), kSharding))};
  return op;
}

}  // namespace tigon::vocab_parallel_cross_entropy
