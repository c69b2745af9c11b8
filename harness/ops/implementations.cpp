// SPDX-License-Identifier: Apache-2.0
// Ops of tigon.h as implementations.
#include "harness/ops/implementations.h"

#include <array>
#include <utility>

#include "kernels/call/typed.h"

namespace tigon {

namespace {

constexpr std::array kDTypes = {DType::kF32, DType::kBF16, DType::kF16};

class Ops {
 public:
  Ops(const char* name, const call::PassInfo& pass, FindOp find) : pass_(pass) {
    for (size_t i = 0; i < kDTypes.size(); ++i)
      ops_[i] = find(name, static_cast<int32_t>(kDTypes[i]));
  }

  // f(op, call); `otherwise` where there is no op of this dtype.
  template <class R, class F>
  R call(DType dtype, const Bound& bound, R otherwise, const F& f) const {
    for (size_t i = 0; i < kDTypes.size(); ++i)
      if (kDTypes[i] == dtype && ops_[i] != nullptr)
        return f(ops_[i], &BoundCall(pass_, bound).get());
    return otherwise;
  }

 private:
  const call::PassInfo& pass_;
  std::array<const tigon_op*, kDTypes.size()> ops_;
};

}  // namespace

Implementation found(std::string implementation, const char* name, const call::PassInfo& pass,
                     FindOp find) {
  const Ops ops(name, pass, find);
  Implementation r;
  r.name = std::move(implementation);
  r.policies = {kDTypes.begin(), kDTypes.end()};
  r.run = [ops](DType dtype, const Bound& bound, Stream stream) {
    return ops.call(dtype, bound, unsupported("not built for this dtype"),
                    [=](auto* op, auto* call) { return status_of(tigon_run(op, call, stream)); });
  };
  r.workspace = [ops](DType dtype, const Bound& bound) {
    return ops.call(dtype, bound, size_t{0}, tigon_workspace);
  };
  r.prepare = [ops](DType dtype, const Bound& bound) {
    return ops.call(dtype, bound, Status{},
                    [](auto* op, auto* call) { return status_of(tigon_prepare(op, call)); });
  };
  return r;
}

}  // namespace tigon
