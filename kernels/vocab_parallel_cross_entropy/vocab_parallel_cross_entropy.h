// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_cross_entropy: cross_entropy of logits whose classes lie in shards, one on each
// rank of a group: classes [first_class, first_class + V) of `classes` in all. Widths may differ
// and may be 0. LossOptions has the formula, over all classes. Ranks tell each other their
// statistics, in one all-gather, or in two where further ones are needed:
//   statistics   of a rank's logits, of its own columns alone
//   all-gather   [R, T, 3], and [R, T, 4] of the further ones, in the order of first_class
//   join         loss and lse of all classes, the same on every rank
//   backward     the gradient of a rank's logits; nothing is told
// As Megatron-LM's vocabulary-parallel loss (Shoeybi et al. 2019), with the maximum and the sum
// found together (Milakov and Gimelshein 2018), so that its three all-reduces become one gather.
#pragma once
#include "kernels/loss/options.h"
#include "kernels/loss/shard.h"

namespace tigon::vocab_parallel_cross_entropy {

inline constexpr char kFormula[] =
    "cross_entropy of logits in shards of classes, with one all-gather of statistics";

inline constexpr Axis T{"T", "tokens"}, V{"V", "classes of this rank"}, R{"R", "ranks"};

// Statistics of a token, of some classes.
enum Statistic : int {
  kMax,     // largest logit, after the softcap; the least float where there is no class
  kSum,     // sum of exp(x - max)
  kTarget,  // the target's logit, before the softcap; -inf where it is another rank's
  kStatistics,
};
// Those for class weights, smoothing and results beside the loss.
enum FurtherStatistic : int {
  kLogits,   // sum of the logits times their class weights
  kMoment,   // sum of exp(x - max) (x - max)
  kLargest,  // largest logit, before the softcap; -inf where there is none
  kHit,  // 1 where the target is the first class with the largest logit, else 0; -1: no class is
  kFurtherStatistics,
};

// An ignored token has the statistics of no class.
template <class P>
struct Statistics : Shard {
  static constexpr char kName[] = "vocab_parallel_cross_entropy.statistics";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> logits;
  View<const int64_t, 1> target;  // of all classes
  View<Accum, 2> statistics;
  View<Accum, 2> further;             // left out: not computed
  View<const Accum, 1> class_weight;  // of all classes; used with label_smoothing
  int64_t ignore_index = -100;
  float label_smoothing = 0.0f;
  float softcap = 0.0f;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Statistics::logits, "logits", {T, V})));
    f(in(&Statistics::target, "target", {T}));
    f(out(&Statistics::statistics, "statistics", {T, kStatistics}));
    f(on_request(out(&Statistics::further, "further", {T, kFurtherStatistics})));
    f(on_request(in(&Statistics::class_weight, "class_weight", {all_classes()})));
    f(option(&Statistics::ignore_index, "ignore_index"));
    f(option(&Statistics::label_smoothing, "label_smoothing"));
    f(option(&Statistics::softcap, "softcap"));
    shard_options(f);
  }
};

// The same results on every rank, in every bit.
template <class P>
struct Join : LossOptions {
  static constexpr char kName[] = "vocab_parallel_cross_entropy.join";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Accum, 3> statistics;
  View<const Accum, 3> further;  // for class weights, smoothing and further results
  View<const int64_t, 1> target;
  View<Accum, 1> loss;                       // [1], or [T] with reduction none
  View<Accum, 1> lse;                        // for backward; 0 for an ignored row
  View<const Accum, 1> class_weight;         // left out: 1 each
  View<const Accum, 1> normaliser;           // left out: counted
  View<Accum, 1> z_part, accuracy, entropy;  // left out: not computed
  int64_t classes = 0;
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(in(&Join::statistics, "statistics", {R, T, kStatistics}));
    f(on_request(in(&Join::further, "further", {R, T, kFurtherStatistics})));
    f(in(&Join::target, "target", {T}));
    f(out(&Join::loss, "loss", {loss_length(T)}));
    f(saved(&Join::lse, "lse", {T}));
    f(on_request(in(&Join::class_weight, "class_weight", {all_classes()})));
    f(on_request(in(&Join::normaliser, "normaliser", {1})));
    loss_results<Join>(f, T);
    loss_options(f);
    f(option(&Join::classes, "classes"));
  }
};

// The gradient takes the place of the logits.
template <class P>
struct Backward : LossOptions, Shard {
  static constexpr char kName[] = "vocab_parallel_cross_entropy.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<Elem, 2> logits;  // in: logits, out: their gradient
  View<const int64_t, 1> target;
  View<const Accum, 1> lse;    // from join
  View<const Accum, 1> dloss;  // upstream gradient, [1] or [T]; left out: 1
  View<const Accum, 1> class_weight;
  View<const Accum, 1> normaliser;
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(gradient("logits", inout(&Backward::logits, "logits", {T, V}))));
    f(in(&Backward::target, "target", {T}));
    f(in(&Backward::lse, "lse", {T}));
    f(optional(gradient("loss", in(&Backward::dloss, "dloss", {loss_length(T)}))));
    f(on_request(in(&Backward::class_weight, "class_weight", {all_classes()})));
    f(on_request(in(&Backward::normaliser, "normaliser", {1})));
    loss_options(f);
    shard_options(f);
  }
};

template <class P>
using Passes = std::tuple<Statistics<P>, Join<P>, Backward<P>>;

// All enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, V >= 0, R >= 1, first_class + V <= classes < 2^31. The columns of
// logits lie side by side; rows may be apart and must not overlap.
// Types: logits are f32, bf16 or f16; target int64; all else float.
// Alignment: any.
// Memory: the gradient takes the place of the logits; no other tensor overlaps another.
// Errors: kInvalidArgument for a shape, a stride, an option, a missing tensor or too little
// scratch; kUnsupported for 2^31 classes or tokens and more; kLaunchFailed for what the device
// says. A target that is no class is no error: LossOptions says what becomes of its row.
template <class P>
Status statistics(const Statistics<P>& args, Stream stream);
template <class P>
Status join(const Join<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

// Bytes of scratch: the normaliser and, where they are reduced, one loss and one of each further
// result per row.
template <class P>
size_t workspace(const Join<P>& args);
template <class P>
size_t workspace(const Backward<P>& args);

}  // namespace tigon::vocab_parallel_cross_entropy
