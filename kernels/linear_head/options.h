// SPDX-License-Identifier: Apache-2.0
// Options of the ops that never hold all logits of a linear head.
#pragma once
#include "kernels/signature/signature.h"

namespace tigon::linear_head {

// What is cut into chunks. Rows: a chunk's logits are computed once, and dw is summed over chunks.
// The vocabulary: a chunk of its columns for all rows, for the least memory; dw is rounded once
// without a sum, and dx is summed in fp32. Logits lie in one chunk of scratch and, until it is
// written, in the memory of dw or dw_fp32 if its rows have no gaps: that has room for nearly all of
// them unless T is larger than H. Those of other columns are computed twice. Where columns are cut,
// and with it the last bits of the loss, depends on whether dw is given.
enum class Split : int { kRows, kVocabulary };

// logits_bytes: most bytes of logits in the scratch; at least one row, or eight columns, are always
// held there.
//
// max_valid_rows: a bound on the rows that are not ignored. The products are cut to that many rows,
// so that ignored rows cost nothing. Only the caller can know it, e.g. from its data loader:
// nothing here waits for the device. With more valid rows than the bound every result of the call
// is NaN, dw_accum too. -1: not known, ignored rows are computed like others.
struct ChunkOptions {
  int64_t logits_bytes = int64_t{1} << 30;
  Split split = Split::kRows;
  int64_t max_valid_rows = -1;
};

constexpr void chunk_options(auto&& f) {
  f(option(&ChunkOptions::logits_bytes, "logits_bytes"));
  f(option(&ChunkOptions::split, "split", {"rows", "vocabulary"}));
  f(option(&ChunkOptions::max_valid_rows, "max_valid_rows"));
}

// Where dx = dlogits w and dw = dlogits^T x go. At most one of dx and dx_fp32 is given, and one of
// dw, dw_fp32 and dw_accum.
template <class P>
struct HeadGradients {
  View<typename P::Elem, 2> dx;         // left out: not computed
  View<typename P::Accum, 2> dx_fp32;   // gets dx unrounded
  View<typename P::Elem, 2> dw;         // left out: not computed
  View<typename P::Accum, 2> dw_fp32;   // gets dw unrounded
  View<typename P::Accum, 2> dw_accum;  // dw is added to it
};
template <class Args>
constexpr void head_gradients(auto&& f, Axis tokens, Axis hidden, Axis vocabulary) {
  using Rounded = View<typename Args::Elem, 2> Args::*;
  using Sum = View<typename Args::Accum, 2> Args::*;
  const auto of_x = [&](auto tensor) { return strided(gradient("x", tensor)); };
  const auto of_w = [&](auto tensor) { return strided(gradient("w", tensor)); };
  f(optional(of_x(out(Rounded(&Args::dx), "dx", {tokens, hidden}))));
  f(on_request(of_x(out(Sum(&Args::dx_fp32), "dx_fp32", {tokens, hidden}))));
  f(optional(of_w(out(Rounded(&Args::dw), "dw", {vocabulary, hidden}))));
  f(on_request(of_w(out(Sum(&Args::dw_fp32), "dw_fp32", {vocabulary, hidden}))));
  f(on_request(of_w(inout(Sum(&Args::dw_accum), "dw_accum", {vocabulary, hidden}))));
}

}  // namespace tigon::linear_head
