// SPDX-License-Identifier: Apache-2.0
// The unfused baselines by name.
#include "reference/naive/ops.h"

#include <vector>

#include "kernels/call/op_list.h"
#include "reference/naive/add_rms_norm.h"
#include "reference/naive/cross_entropy.h"
#include "reference/naive/divergence.h"
#include "reference/naive/geglu.h"
#include "reference/naive/layer_norm.h"
#include "reference/naive/linear_cross_entropy.h"
#include "reference/naive/linear_divergence.h"
#include "reference/naive/linear_log_prob.h"
#include "reference/naive/linear_policy.h"
#include "reference/naive/log_prob.h"
#include "reference/naive/rms_norm.h"
#include "reference/naive/rope.h"
#include "reference/naive/softmax.h"
#include "reference/naive/swiglu.h"

namespace tigon::naive {

namespace {

struct Launchers {
  template <class Args>
  Status run(const Args& args, const Scratch&, Stream stream) const {
    if constexpr (requires { naive::forward(args, stream); })
      return naive::forward(args, stream);
    else if constexpr (requires { naive::backward(args, stream); })
      return naive::backward(args, stream);
    else
      return naive::forward_backward(args, stream);
  }
};

template <class P>
void add_dtype(std::vector<tigon_op>* ops) {
  using call::add_passes;
  add_passes<Launchers>("naive", static_cast<rms_norm::Passes<P>*>(nullptr), rms_norm::kFormula,
                        ops);
  add_passes<Launchers>("naive", static_cast<add_rms_norm::Passes<P>*>(nullptr),
                        add_rms_norm::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<layer_norm::Passes<P>*>(nullptr), layer_norm::kFormula,
                        ops);
  add_passes<Launchers>("naive", static_cast<rope::Passes<P>*>(nullptr), rope::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<swiglu::Passes<P>*>(nullptr), swiglu::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<geglu::Passes<P>*>(nullptr), geglu::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<softmax::Passes<P>*>(nullptr), softmax::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<log_prob::Passes<P>*>(nullptr), log_prob::kFormula,
                        ops);
  add_passes<Launchers>("naive", static_cast<linear_log_prob::Passes<P>*>(nullptr),
                        linear_log_prob::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<linear_policy::Passes<P>*>(nullptr),
                        linear_policy::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<divergence::Passes<P>*>(nullptr), divergence::kFormula,
                        ops);
  add_passes<Launchers>("naive", static_cast<linear_divergence::Passes<P>*>(nullptr),
                        linear_divergence::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<cross_entropy::Passes<P>*>(nullptr),
                        cross_entropy::kFormula, ops);
  add_passes<Launchers>("naive", static_cast<linear_cross_entropy::Passes<P>*>(nullptr),
                        linear_cross_entropy::kFormula, ops);
}

}  // namespace

const tigon_op* find(const char* name, int32_t dtype) {
  static const std::vector<tigon_op> ops =
      call::ops_of_every_dtype([]<class P>(std::vector<tigon_op>* all) { add_dtype<P>(all); });
  return call::find(ops, name, dtype);
}

}  // namespace tigon::naive
