// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_log_prob: log_prob of logits whose classes lie in shards, one on each rank of a
// group: classes [first_class, first_class + V) of `classes` in all. Widths may differ and may be
// 0. log_prob.h has the formula, over all classes. Ranks tell each other their statistics, in one
// all-gather, and in another one for the entropy:
//   statistics   of a rank's logits, of its own columns alone
//   all-gather   [R, T, 3], and [R, T] of the moment, in the order of first_class
//   join         log-probabilities, lse and entropy of all classes, the same on every rank
//   backward     the gradient of a rank's logits; nothing is told
// As Megatron-LM's vocabulary-parallel loss (Shoeybi et al. 2019), with the maximum and the sum
// found together (Milakov and Gimelshein 2018), so that its three all-reduces become one gather.
// A rank with all classes has log_prob's results, in every bit.
#pragma once
#include "kernels/log_prob/shard.h"

namespace tigon::vocab_parallel_log_prob {

inline constexpr char kFormula[] =
    "log_prob of logits in shards of classes, with one all-gather of statistics";

inline constexpr Axis T{"T", "tokens"}, V{"V", "classes of this rank"}, R{"R", "ranks"};

using log_prob::kStatistics;  // log_prob/shard.h says what they are
using log_prob::Options;
using log_prob::options;

// An ignored token has the statistics of no class.
template <class P>
struct Statistics : Options, Shard {
  static constexpr char kName[] = "vocab_parallel_log_prob.statistics";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> logits;
  View<const int64_t, 1> target;  // of all classes
  View<Accum, 2> statistics;
  View<Accum, 1> moment;  // for the entropy; left out: not computed
  static constexpr void fields(auto&& f) {
    f(strided(in(&Statistics::logits, "logits", {T, V})));
    f(in(&Statistics::target, "target", {T}));
    f(out(&Statistics::statistics, "statistics", {T, kStatistics}));
    f(on_request(out(&Statistics::moment, "moment", {T})));
    options(f);
    shard_options(f);
  }
};

// The same results on every rank, in every bit. A target that no rank has gives a logp of NaN.
template <class P>
struct Join : Options {
  static constexpr char kName[] = "vocab_parallel_log_prob.join";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Accum, 3> statistics;
  View<const Accum, 2> moment;  // where there is an entropy
  View<const int64_t, 1> target;
  View<Accum, 1> logp;
  View<Accum, 1> lse;      // for backward; 0 for an ignored row
  View<Accum, 1> entropy;  // left out: not computed
  static constexpr void fields(auto&& f) {
    f(in(&Join::statistics, "statistics", {R, T, kStatistics}));
    f(on_request(in(&Join::moment, "moment", {R, T})));
    f(in(&Join::target, "target", {T}));
    f(out(&Join::logp, "logp", {T}));
    f(saved(&Join::lse, "lse", {T}));
    f(on_request(out(&Join::entropy, "entropy", {T})));
    options(f);
  }
};

// That of log_prob, for this rank's classes; lse and entropy are from join.
template <class P>
struct Backward : log_prob::Backward<P>, Shard {
  static constexpr char kName[] = "vocab_parallel_log_prob.backward";
  static constexpr void fields(auto&& f) {
    log_prob::Backward<P>::fields(f);
    shard_options(f);
  }
};

template <class P>
using Passes = std::tuple<Statistics<P>, Join<P>, Backward<P>>;

// All enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), 0 <= T < 2^31, V >= 0, R >= 1, first_class + V <= classes < 2^31. The
// columns of logits and dlogits lie side by side; rows may be apart and must not overlap.
// Types: logits and dlogits are f32, bf16 or f16; target int64; all else float.
// Alignment: any. Fast where the rows of logits and dlogits start equally far from a multiple of 16
// bytes.
// Memory: no tensor overlaps another, but as may_alias() in fields() says.
// Errors: kInvalidArgument for a shape, a stride, an option or a missing tensor; kUnsupported for
// 2^31 classes or tokens and more; kLaunchFailed for what the device says. A target that is no
// class is no error: log_prob.h says what becomes of its row.
template <class P>
Status statistics(const Statistics<P>& args, Stream stream);
template <class P>
Status join(const Join<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);

}  // namespace tigon::vocab_parallel_log_prob
