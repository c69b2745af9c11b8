// Planted faults of softmax and of what it shares with the losses: numbers.
#include "harness/mutants/mutant.h"

namespace tigon {

namespace {

const std::vector<MutantTarget> kForward = {{"softmax", {"forward"}}};
const std::vector<MutantTarget> kBackward = {{"softmax", {"backward"}}};
const std::vector<MutantTarget> kBoth = {{"softmax", {"forward", "backward"}}};
const std::vector<MutantTarget> kExpSums = {
    {"softmax", {"forward"}},
    {"cross_entropy", {"forward", "forward_backward"}},
    {"linear_cross_entropy", {"forward", "forward_backward"}},
};
// linear_cross_entropy pads its logits: rows without a head.
const std::vector<MutantTarget> kSlicesWithHeads = {
    {"softmax", {"forward", "backward"}},
    {"cross_entropy", {"forward", "backward", "forward_backward"}},
};
const std::vector<MutantTarget> kSlices = {
    {"softmax", {"forward", "backward"}},
    {"cross_entropy", {"forward", "backward", "forward_backward"}},
    {"linear_cross_entropy", {"forward", "forward_backward"}},
};

}  // namespace

std::vector<Mutant> softmax_mutants() {
  return {
      {.name = "exp_sum.not_rescaled",
       .catalogue = 18,
       .what = "the online sum keeps its old scale when the maximum grows",
       .targets = kExpSums,
       .hint = "inputs=last_block"},
      {.name = "exp_sum.join_without_rescale",
       .catalogue = 18,
       .what = "sums of threads are added without bringing them to one scale",
       .targets = kExpSums,
       .hint = "inputs=normal"},
      {.name = "exp_sum.max_not_subtracted",
       .catalogue = 19,
       .what = "exp(x) instead of exp(x - max)",
       .targets = kExpSums,
       .hint = "inputs=shifted"},
      {.name = "exp_sum.nan_swallowed",
       .catalogue = 47,
       .what = "a logit that is NaN counts for nothing",
       .targets = kExpSums,
       .hint = "inputs=.*(nan|finite)"},
      {.name = "row_slice.tail_lost",
       .catalogue = 1,
       .what = "columns behind the last whole vector are left out",
       .targets = kSlices,
       .hint = "inputs=normal"},
      {.name = "row_slice.head_lost",
       .catalogue = 1,
       .what = "columns before the first 16-byte boundary are left out",
       .targets = kSlicesWithHeads,
       .hint = "V=33"},
      {.name = "row_slice.last_vector_lost",
       .catalogue = 28,
       .what = "the last vector of the vocabulary is left out",
       .targets = kSlices,
       .hint = "V=33"},
      {.name = "cluster_reduce.other_blocks_lost",
       .catalogue = 18,
       .what = "only the first block's part of a row is reduced",
       .targets = kBoth,
       .hint = "V=(40001|200003|800003)"},
      {.name = "softmax.projection_missing",
       .catalogue = 5,
       .what = "dx = y * dy",
       .targets = kBackward,
       .hint = "T=3,V=33,inputs=normal"},
      {.name = "softmax.mean_for_sum",
       .catalogue = 6,
       .what = "the sum of y * dy is divided by the number of columns",
       .targets = kBackward,
       .hint = "T=3,V=33,inputs=normal"},
      {.name = "softmax.products_in_bf16",
       .catalogue = 8,
       .what = "each addition to the sum of y * dy is rounded to bf16",
       .targets = kBackward,
       .hint = "T=3,V=33,inputs=normal"},
      {.name = "softmax.rest_lost",
       .catalogue = 28,
       .what = "columns that registers do not hold are left out",
       .targets = kBoth,
       .hint = "V=800003"},
      {.name = "softmax.stride_ignored",
       .catalogue = 43,
       .what = "rows of the inputs are taken to follow each other",
       .targets = kBoth,
       .hint = "gap="},
      {.name = "softmax.offset_in_int32",
       .catalogue = 39,
       .what = "the offset of a row of y or dx is 32 bits wide",
       .targets = kBoth,
       .hint = kFarRows,
       .host_only = kHugeOnGpu},
  };
}

}  // namespace tigon
