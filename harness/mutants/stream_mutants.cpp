// Planted faults of rope and swiglu and of what every op uses: numbers.
#include "harness/mutants/mutant.h"

namespace tigon {

namespace {

const std::vector<MutantTarget> kRopeForward = {{"rope", {"forward"}}};
const std::vector<MutantTarget> kRopeBoth = {{"rope", {"forward", "backward"}}};
const std::vector<MutantTarget> kSwigluForward = {{"swiglu", {"forward"}}};
const std::vector<MutantTarget> kSwigluBackward = {{"swiglu", {"backward"}}};
const std::vector<MutantTarget> kSwigluBoth = {{"swiglu", {"forward", "backward"}}};
const std::vector<MutantTarget> kEveryOp = {
    {"rms_norm", {"forward", "backward"}},
    {"rope", {"forward", "backward"}},
    {"swiglu", {"forward", "backward"}},
    {"cross_entropy", {"forward", "backward", "forward_backward"}},
    {"linear_cross_entropy", {"forward", "forward_backward"}},
};

}  // namespace

std::vector<Mutant> stream_mutants() {
  return {
      {.name = "vec.store_truncates",
       .catalogue = 11,
       .what = "16-bit stores cut bits off instead of rounding",
       .targets = kEveryOp,
       .hint = "inputs=normal",
       .equivalents =
           {{.dtypes = {DType::kF32},
             .proof = "float values are stored as they are: there is nothing to round or to cut"},
            {.op = "cross_entropy",
             .pass = "forward",
             .proof = "its outputs, loss and lse, are float: no 16-bit value is stored"},
            {.op = "linear_cross_entropy",
             .pass = "forward",
             .proof = "its outputs are float, and the logits are rounded by the GEMM library"}}},
      {.name = "launch.nothing",
       .catalogue = 44,
       .what = "no kernel is launched",
       .targets = kEveryOp,
       .hint = "inputs=normal"},
      {.name = "rope.sin_sign",
       .catalogue = 34,
       .what = "sin has the other sign",
       .targets = kRopeBoth},
      {.name = "rope.neighbours_paired",
       .catalogue = 34,
       .what = "neighbours are turned instead of the halves of a head",
       .targets = kRopeBoth,
       .hint = "D=(6|16)"},
      {.name = "rope.backward_turns_forward",
       .catalogue = 34,
       .what = "backward turns as forward does",
       .targets = {{"rope", {"backward"}}}},
      {.name = "rope.position_ignored",
       .catalogue = 34,
       .what = "every token has the angles of the first (stride 0)",
       .targets = kRopeBoth,
       .hint = "T=3"},
      {.name = "rope.read_after_write",
       .catalogue = 27,
       .what = "the second half uses the first when it is turned already",
       .targets = kRopeBoth,
       .hint = "T=3"},
      {.name = "rope.offset_in_int32",
       .catalogue = 39,
       .what = "the offset of a token of q is 32 bits wide",
       .targets = kRopeBoth,
       .hint = kFarRows,
       .host_only = kHugeOnGpu},
      {.name = "rope.last_head_lost",
       .what = "the last head of k is not turned",
       .targets = kRopeBoth,
       .hint = "T=3"},
      {.name = "rope.k_has_stride_of_q",
       .catalogue = 43,
       .what = "tokens of k are as far apart as those of q",
       .targets = kRopeBoth,
       .hint = "T=3"},
      {.name = "rope.angles_in_bf16",
       .what = "cos and sin are rounded to bf16",
       .targets = kRopeBoth,
       .hint = "T=3"},
      {.name = "stream_rows.tail_dropped",
       .catalogue = 1,
       .what = "columns behind the last whole vector are left out",
       .targets = kSwigluBoth,
       .hint = "inputs=normal"},
      {.name = "swiglu.gate_and_up_swapped",
       .catalogue = 32,
       .what = "silu(b) * a",
       .targets = kSwigluForward},
      {.name = "swiglu.gradients_swapped",
       .catalogue = 32,
       .what = "da and db are exchanged",
       .targets = kSwigluBackward},
      {.name = "swiglu.derivative_term_missing",
       .catalogue = 30,
       .what = "silu' = sigmoid",
       .targets = kSwigluBackward},
      {.name = "swiglu.silu_in_bf16",
       .catalogue = 31,
       .what = "silu(a) is rounded to bf16 before the product",
       .targets = kSwigluBoth},
      {.name = "swiglu.dy_ignored",
       .catalogue = 21,
       .what = "the gradient is that of a sum of y",
       .targets = kSwigluBackward},
      {.name = "swiglu.stride_ignored",
       .catalogue = 43,
       .what = "rows of y are taken to follow each other",
       .targets = kSwigluForward,
       .hint = "gap="},
  };
}

}  // namespace tigon
