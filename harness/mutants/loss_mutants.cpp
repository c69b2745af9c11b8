// Planted faults of the losses: numbers.
#include "harness/mutants/mutant.h"

namespace tigon {

namespace {

// What both losses share, by the pass in which it shows.
const std::vector<MutantTarget> kLoss = {
    {"cross_entropy", {"forward", "forward_backward"}},
    {"linear_cross_entropy", {"forward", "forward_backward"}},
};
const std::vector<MutantTarget> kGradient = {
    {"cross_entropy", {"backward", "forward_backward"}},
    {"linear_cross_entropy", {"forward_backward"}},
};
const std::vector<MutantTarget> kAll = {
    {"cross_entropy", {"forward", "backward", "forward_backward"}},
    {"linear_cross_entropy", {"forward", "forward_backward"}},
};
const std::vector<MutantTarget> kLinear = {
    {"linear_cross_entropy", {"forward", "forward_backward"}}};
const std::vector<MutantTarget> kLinearGradient = {{"linear_cross_entropy", {"forward_backward"}}};

// Shapes whose rows need a cluster of blocks.
constexpr const char* kWideRows = "V=(128256|32001)";

std::vector<Mutant> shared_mutants() {
  return {
      {.name = "loss.ignored_counted",
       .catalogue = 15,
       .what = "the mean counts ignored rows",
       .targets = kAll,
       .hint = "inputs=ignored"},
      {.name = "loss.sum_for_mean",
       .catalogue = 15,
       .what = "the mean is not divided by the number of rows",
       .targets = kLoss,
       .hint = "inputs=normal"},
      {.name = "loss.ignore_index_unused",
       .catalogue = 15,
       .what = "ignore_index is not looked at",
       .targets = kAll,
       .hint = "inputs=ignored"},
      {.name = "loss.smoothing_sum_missing",
       .catalogue = 16,
       .what = "the smoothed loss lacks the mean of the logits",
       .targets = kLoss,
       .hint = "label_smoothing="},
      {.name = "loss.smoothing_slope_missing",
       .catalogue = 17,
       .what = "the gradient lacks smoothing / V",
       .targets = kGradient,
       .hint = "label_smoothing="},
      {.name = "loss.smoothing_keeps_target",
       .catalogue = 17,
       .what = "the target's gradient is not reduced by the smoothing",
       .targets = kGradient,
       .hint = "label_smoothing="},
      {.name = "loss.cluster_not_joined",
       .catalogue = 18,
       .what = "the blocks of a cluster keep their own statistics",
       .targets = {{"cross_entropy", {"forward_backward"}}},
       .hint = kWideRows},
      {.name = "loss.target_off_by_one",
       .catalogue = 20,
       .what = "the class behind the target",
       .targets = kAll,
       .hint = "inputs=normal"},
      {.name = "loss.dloss_ignored",
       .catalogue = 21,
       .what = "the upstream gradient is taken as 1",
       .targets = kGradient,
       .hint = "inputs=normal"},
      {.name = "loss.dloss_of_first_row",
       .catalogue = 22,
       .what = "every row has the first row's upstream gradient",
       .targets = kGradient,
       .hint = "reduction=none"},
      {.name = "loss.softcap_slope_missing",
       .catalogue = 23,
       .what = "the softcap's derivative is taken as 1",
       .targets = kGradient,
       .hint = "softcap="},
      {.name = "loss.target_without_softcap",
       .catalogue = 23,
       .what = "the target's logit is not capped in the loss",
       .targets = kLoss,
       .hint = "softcap="},
      {.name = "loss.z_loss_slope_missing",
       .catalogue = 24,
       .what = "the gradient lacks the z-loss",
       .targets = kGradient,
       .hint = "z_loss="},
      {.name = "loss.target_gradient_rounded",
       .catalogue = 25,
       .what = "p of the true class is stored in the element type before 1 is taken off",
       .targets = kGradient,
       .hint = "inputs=(confident|certain)",
       .equivalents = {{.dtypes = {DType::kF32},
                        .proof = "the element type is float, as p is: the buffer loses nothing but "
                                 "one float rounding, within the budget's c0"}}},
      {.name = "loss.other_gradients_zero",
       .catalogue = 26,
       .what = "only the target gets a gradient",
       .targets = kGradient,
       .hint = "inputs=normal"},
      {.name = "loss.ignored_gradient_kept",
       .catalogue = 41,
       .what = "the logits of an ignored row stay where its gradient belongs",
       .targets = kGradient,
       .hint = "inputs=ignored"},
      {.name = "loss.invalid_target_ignored",
       .catalogue = 47,
       .what = "the gradient of a row with an invalid target is 0 and not NaN",
       .targets = kGradient,
       .hint = "inputs=invalid"},
      {.name = "loss.offset_in_int32",
       .catalogue = 39,
       .what = "the offset of a row of logits is 32 bits wide",
       .targets = {{"cross_entropy", {"forward", "backward", "forward_backward"}}},
       .hint = kFarRows,
       .host_only = kHugeOnGpu},
      {.name = "loss.stride_ignored",
       .catalogue = 43,
       .what = "rows of logits are taken to follow each other",
       .targets = {{"cross_entropy", {"forward", "backward", "forward_backward"}}},
       .hint = "gap="},
  };
}

std::vector<Mutant> linear_mutants() {
  return {
      {.name = "linear_cross_entropy.padding_ignored",
       .catalogue = 43,
       .what = "the row sweep does not know the padding of the logits",
       .targets = kLinear,
       .hint = "V=(7|33)"},
      {.name = "linear_cross_entropy.last_chunk_lost",
       .catalogue = 35,
       .what = "a last chunk that is not full is left out",
       .targets = kLinear,
       .hint = "logits_bytes="},
      {.name = "linear_cross_entropy.dw_summed_as_stored",
       .catalogue = 36,
       .what = "dw is rounded to the element type after every chunk",
       .targets = kLinearGradient,
       .hint = "logits_bytes=200,",
       .equivalents = {{.dtypes = {DType::kF32},
                        .proof = "dw is float itself: the kernel already adds its chunks in place, "
                                 "and the switch chooses what is chosen without it"}}},
      {.name = "linear_cross_entropy.dw_of_last_chunk",
       .catalogue = 41,
       .what = "every chunk overwrites dw",
       .targets = kLinearGradient,
       .hint = "logits_bytes="},
      {.name = "linear_cross_entropy.dw_not_cleared",
       .catalogue = 41,
       .what = "the first chunk adds to what dw held",
       .targets = kLinearGradient,
       .hint = "inputs=normal"},
      {.name = "linear_cross_entropy.dx_of_first_chunk",
       .catalogue = 35,
       .what = "every chunk writes the first rows of dx",
       .targets = kLinearGradient,
       .hint = "logits_bytes="},
      {.name = "linear_cross_entropy.targets_of_first_chunk",
       .catalogue = 35,
       .what = "every chunk reads the first targets",
       .targets = kLinear,
       .hint = "logits_bytes="},
      {.name = "linear_cross_entropy.dloss_of_first_chunk",
       .catalogue = 22,
       .what = "every chunk reads the first upstream gradients",
       .targets = kLinearGradient,
       .hint = "logits_bytes=.*reduction=none"},
  };
}

}  // namespace

std::vector<Mutant> loss_mutants() {
  std::vector<Mutant> mutants = shared_mutants();
  for (Mutant& m : linear_mutants()) mutants.push_back(std::move(m));
  return mutants;
}

}  // namespace tigon
