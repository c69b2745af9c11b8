// SPDX-License-Identifier: Apache-2.0
// vocab_parallel_linear_cross_entropy: linear_cross_entropy where each rank of a group has the rows
// of w for some classes: [first_class, first_class + V) of `classes` in all. Widths may differ. All
// ranks have the same x. Logits are never all held, on no rank.
//   statistics   of a rank's logits
//   all-gather and join, as vocab_parallel_cross_entropy has them: loss and lse of all classes
//   backward     dw and dbias of a rank's classes, and its part of dx
//   all-reduce   dx, or a reduce-scatter where each rank goes on with some rows
// statistics is one product, backward three, because lse says all that a row needs.
#pragma once
#include <functional>

#include "kernels/linear_head/options.h"
#include "kernels/vocab_parallel_cross_entropy/vocab_parallel_cross_entropy.h"

namespace tigon::vocab_parallel_linear_cross_entropy {

inline constexpr char kFormula[] =
    "cross_entropy(x w^T + bias, target) with the classes of w in shards, rows in chunks";

inline constexpr Axis T{"T", "tokens"}, H{"H", "hidden size"}, V{"V", "classes of this rank"};

using linear_head::ChunkOptions;
using linear_head::head_gradients;
using linear_head::HeadGradients;
using linear_head::Split;
using vocab_parallel_cross_entropy::kFurtherStatistics;
using vocab_parallel_cross_entropy::kStatistics;

// What vocab_parallel_cross_entropy::Statistics says of logits x w^T + bias, rounded to the element
// type. Rows go in chunks.
template <class P>
struct Statistics : Shard, ChunkOptions {
  static constexpr char kName[] = "vocab_parallel_linear_cross_entropy.statistics";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;  // of all classes
  View<Accum, 2> statistics;
  View<Accum, 2> further;             // left out: not computed
  View<const Elem, 1> bias;           // left out: none
  View<const Accum, 1> class_weight;  // of all classes; used with label_smoothing
  int64_t ignore_index = -100;
  float label_smoothing = 0.0f;
  float softcap = 0.0f;
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Statistics::x, "x", {T, H})));
    f(strided(in(&Statistics::w, "w", {V, H})));
    f(in(&Statistics::target, "target", {T}));
    f(out(&Statistics::statistics, "statistics", {T, kStatistics}));
    f(on_request(out(&Statistics::further, "further", {T, kFurtherStatistics})));
    f(on_request(in(&Statistics::bias, "bias", {V})));
    f(on_request(in(&Statistics::class_weight, "class_weight", {all_classes()})));
    f(option(&Statistics::ignore_index, "ignore_index"));
    f(option(&Statistics::label_smoothing, "label_smoothing"));
    f(option(&Statistics::softcap, "softcap"));
    shard_options(f);
    f(option(&ChunkOptions::logits_bytes, "logits_bytes"));
  }
};

// Computes the logits again and, over them, their gradient, then dw, dbias and this rank's part of
// dx. Parts of dx are added over ranks: dx_fp32 keeps them from being rounded before.
template <class P>
struct Backward : LossOptions, Shard, ChunkOptions, HeadGradients<P> {
  static constexpr char kName[] = "vocab_parallel_linear_cross_entropy.backward";
  using Elem = typename P::Elem;
  using Accum = typename P::Accum;
  View<const Elem, 2> x, w;
  View<const int64_t, 1> target;
  View<const Accum, 1> lse;    // from join
  View<const Accum, 1> dloss;  // upstream gradient of join's loss, [1] or [T]; left out: 1
  View<const Elem, 1> bias;
  View<Accum, 1> dbias;  // left out: not computed
  View<const Accum, 1> class_weight;
  View<const Accum, 1> normaliser;
  Scratch scratch;
  static constexpr void fields(auto&& f) {
    f(strided(in(&Backward::x, "x", {T, H})));
    f(strided(in(&Backward::w, "w", {V, H})));
    f(in(&Backward::target, "target", {T}));
    f(in(&Backward::lse, "lse", {T}));
    f(optional(in(&Backward::dloss, "dloss", {loss_length(T)})));
    head_gradients<Backward>(f, T, H, V);
    f(on_request(in(&Backward::bias, "bias", {V})));
    f(on_request(gradient("bias", out(&Backward::dbias, "dbias", {V}))));
    f(on_request(in(&Backward::class_weight, "class_weight", {all_classes()})));
    f(on_request(in(&Backward::normaliser, "normaliser", {1})));
    loss_options(f);
    shard_options(f);
    f(option(&ChunkOptions::logits_bytes, "logits_bytes"));
    f(option(&ChunkOptions::split, "split", {"rows", "vocabulary"}));
  }
};

// Told between chunks of rows: what is on the stream by then completes dx of rows [0, end). Where
// columns are cut, nothing is told.
using RowsDone = std::function<Status(int64_t end)>;

template <class P>
using Passes = std::tuple<Statistics<P>, Backward<P>>;

// All enqueue on `stream` and wait for nothing.
// Shapes: as in fields(), T >= 0, 1 <= H < 2^31, V >= 1, T < 2^31, first_class + V <= classes <
// 2^31. Columns lie side by side; rows of matrices may be apart and must not overlap.
// Types: x, w, bias, dx and dw are f32, bf16 or f16; target int64; all else float.
// Alignment: any. The products are fast where rows start at multiples of 16 bytes.
// Memory: no tensor overlaps another.
// Errors: kInvalidArgument for a shape, a stride, an option, a missing tensor or too little
// scratch; kUnsupported for sizes beyond these, for max_valid_rows and for statistics by split
// vocabulary; kLaunchFailed for what the device or the GEMM
// library says.
template <class P>
Status statistics(const Statistics<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, Stream stream);
template <class P>
Status backward(const Backward<P>& args, const RowsDone& rows_done, Stream stream);

// Bytes of scratch: one chunk of logits, the GEMM's workspace and, with several chunks, the fp32
// sum of the gradient that they share.
template <class P>
size_t workspace(const Statistics<P>& args);
template <class P>
size_t workspace(const Backward<P>& args);

// As linear_cross_entropy's.
template <class P>
Status tune(const Statistics<P>& args);
template <class P>
Status tune(const Backward<P>& args);

}  // namespace tigon::vocab_parallel_linear_cross_entropy
