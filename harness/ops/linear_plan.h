// SPDX-License-Identifier: Apache-2.0
// What the contracts of losses behind a linear layer share.
#pragma once
#include <vector>

#include "harness/ops/input_sets.h"
#include "harness/spec/op_spec.h"
#include "reference/linear_head.h"

namespace tigon {

// Adds sets of w, and of x, that make special logits. The front set is the normal one.
inline void add_linear_logits(std::vector<InputSet>* sets) {
  const InputSet normal = sets->front();
  const auto add = [&](const char* name, const std::vector<InputPlan>& plans) {
    sets->push_back(replaced(normal, name, plans));
  };
  add("confident", {{"w", "normal"}});
  add("shifted", {{"x", "first_column", {{"value", 4}}},
                  {"w", "first_column", {{"value", 10}, {"scale", 0.25}}}});
  add("far_below", {{"x", "first_column", {{"value", 4}}},
                    {"w", "first_column", {{"value", -30}, {"scale", 0.25}}}});
  // All logits of a row within a step of bf16: they are rounded alike.
  add("narrow", {{"x", "first_column", {{"value", 3}, {"scale", 0.1}}},
                 {"w", "first_column", {{"value", 10.0625}, {"scale", 0.1}}}});
  add("last_block",
      {{"x", "first_column", {{"value", 4}}}, {"w", "last_row", {{"value", 8}, {"scale", 0.25}}}});
  // The target of row 0 is the last class and has nearly all the probability.
  add("certain",
      {{"x", "first_column", {{"value", 4}}}, {"w", "last_row", {{"value", 3}, {"scale", 0.25}}}});
}

// U of dx = dlogits w, dw = dlogits^T x and dbias, for dlogits stored in f16, per column of what
// multiplies them: the 2-norm, or a quarter of the 1-norm, which makes the budget's 2 eta U the
// bound of half an eta each. With few columns the bits that are lost follow w: all dlogits of a row
// are nearly equal. The logits' own lost bits are below the roundings of their sum.
template <class Rows>
auto column_norms(const Rows& a) {
  return a.square().colwise().sum().sqrt().max(a.abs().colwise().sum() / 4).eval();
}

template <class Args>
void gradients_underflow(const Args& a) {
  const auto x = reference::array(a.x), w = reference::array(a.w);
  if (a.dx) reference::array(a.dx).rowwise() = column_norms(w);
  reference::linear_head::for_dw(
      a, [&](const auto& to) { reference::array(to).rowwise() = column_norms(x); });
  if (a.dbias)
    reference::array(a.dbias).setConstant(
        column_norms(reference::Rows<double>::Ones(x.rows(), 1).eval())[0]);
}

}  // namespace tigon
