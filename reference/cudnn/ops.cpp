// SPDX-License-Identifier: Apache-2.0
// The engines of cuDNN by name.
#include "reference/cudnn/ops.h"

#include <vector>

#include "kernels/call/op_list.h"
#include "reference/cudnn/layer_norm.h"
#include "reference/cudnn/rms_norm.h"
#include "reference/cudnn/softmax.h"

namespace tigon::cudnn {

namespace {

// The functions of all ops under one name.
namespace any {
using layer_norm::backward;
using layer_norm::forward;
using layer_norm::workspace;
using rms_norm::backward;
using rms_norm::forward;
using rms_norm::workspace;
using softmax::backward;
using softmax::forward;
}  // namespace any

struct Launchers {
  template <class Args>
  Status run(const Args& args, const Scratch& scratch, Stream stream) const {
    if constexpr (requires { any::forward(args, scratch, stream); })
      return any::forward(args, scratch, stream);
    else
      return any::backward(args, scratch, stream);
  }
  template <class Args>
  requires requires(const Args& args) { any::workspace(args); }
  size_t workspace_bytes(const Args& args) const { return any::workspace(args); }
};

// Two functions that fit equally well would be none to the constraint above.
template <class Args>
concept AsksForScratch = requires(const Launchers& l, const Args& args) {
  l.workspace_bytes(args);
};
static_assert(AsksForScratch<tigon::rms_norm::Forward<F32>>);
static_assert(AsksForScratch<tigon::rms_norm::Backward<F32>>);
static_assert(AsksForScratch<tigon::layer_norm::Forward<F32>>);
static_assert(AsksForScratch<tigon::layer_norm::Backward<F32>>);

template <class P>
void add_dtype(std::vector<tigon_op>* ops) {
  using call::add_passes;
  add_passes<Launchers>("cudnn", static_cast<tigon::rms_norm::Passes<P>*>(nullptr),
                        tigon::rms_norm::kFormula, ops);
  add_passes<Launchers>("cudnn", static_cast<tigon::layer_norm::Passes<P>*>(nullptr),
                        tigon::layer_norm::kFormula, ops);
  add_passes<Launchers>("cudnn", static_cast<tigon::softmax::Passes<P>*>(nullptr),
                        tigon::softmax::kFormula, ops);
}

}  // namespace

const char* absent() { return ""; }

const tigon_op* find(const char* name, int32_t dtype) {
  static const std::vector<tigon_op> ops =
      call::ops_of_every_dtype([]<class P>(std::vector<tigon_op>* all) { add_dtype<P>(all); });
  return call::find(ops, name, dtype);
}

}  // namespace tigon::cudnn
