// SPDX-License-Identifier: Apache-2.0
// The table of a model's ops.
#include "convergence/ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "convergence/converge.h"
#include "reference/naive/ops.h"

namespace tigon::convergence {

namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<std::string> op_names() {
  return {op_name<rms_norm::Forward>(), op_name<layer_norm::Forward>(),
          op_name<rope::Forward>(),     op_name<swiglu::Forward>(),
          op_name<geglu::Forward>(),    op_name<linear_cross_entropy::Forward>()};
}

template <class P>
Ops<P>::Ops(const std::function<bool(std::string_view)>& is_fused) {
  constexpr auto kDType = static_cast<int32_t>(dtype_of<typename P::Elem>);
  for (int32_t i = 0; const tigon_op* kernel = tigon_op_at(i); ++i) {
    if (kernel->dtype != kDType) continue;
    const bool fused = is_fused(op_of_pass(kernel->name));
    // Both are the program's.
    ops_[kernel->name] = {std::shared_ptr<const void>(),
                          fused ? kernel : naive::find(kernel->name, kDType)};
  }
}

template <class P>
Ops<P> fused_ops() {
  return Ops<P>([](std::string_view) { return true; });
}

template <class P>
Ops<P> naive_ops() {
  return Ops<P>([](std::string_view) { return false; });
}

template <class P>
Ops<P> mixed_ops(const std::vector<std::string>& fused) {
  for (const std::string& name : fused)
    if (!contains(op_names(), name))
      throw ConvergeError(2, fmt::format("no op '{}' in the model: there are {}", name,
                                         fmt::join(op_names(), ", ")));
  return Ops<P>([&](std::string_view op) { return contains(fused, op); });
}

template class Ops<F32>;
template class Ops<BF16>;
template Ops<F32> fused_ops<F32>();
template Ops<BF16> fused_ops<BF16>();
template Ops<F32> naive_ops<F32>();
template Ops<BF16> naive_ops<BF16>();
template Ops<F32> mixed_ops<F32>(const std::vector<std::string>&);
template Ops<BF16> mixed_ops<BF16>(const std::vector<std::string>&);

}  // namespace tigon::convergence
