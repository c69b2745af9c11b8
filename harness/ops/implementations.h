// SPDX-License-Identifier: Apache-2.0
// The implementations of a contract: ops of tigon.h, found by name.
#pragma once
#include <string>

#include "harness/spec/bind.h"
#include "reference/cudnn/ops.h"
#include "reference/naive/ops.h"

namespace tigon {

// What finds an op, as tigon_find() does.
using FindOp = const tigon_op* (*)(const char* name, int32_t dtype);

// Calls the ops `name` ("rms_norm.forward") of F32, BF16 and F16, which have the tensors and
// options of `pass`. The reason of a status lives until the thread's next call.
Implementation found(std::string implementation, const char* name, const call::PassInfo& pass,
                     FindOp find);

template <template <class> class Args>
Implementation found(const char* implementation, FindOp find) {
  return found(implementation, Args<F32>::kName, call::pass_info<Args<F32>>(), find);
}

// Tigon's kernels.
template <template <class> class Args>
Implementation fused() {
  return found<Args>("fused", tigon_find);
}

// One library call per primitive step.
template <template <class> class Args>
Implementation naive_chain() {
  return found<Args>("naive", naive::find);
}

// cuDNN's fused engine; absent where this program has none.
template <template <class> class Args>
Implementation cudnn_engine() {
  Implementation engine = found<Args>("cudnn", cudnn::find);
  engine.absent = cudnn::absent();
  if (!engine.absent.empty())
    engine.run = [](DType, const Bound&, Stream) { return unsupported(cudnn::absent()); };
  return engine;
}

}  // namespace tigon
