// The ops of this program or library: those of TIGON_OPS, in all their dtypes.
#pragma once
#include <tuple>
#include <vector>

#include "kernels/call/erase.h"

namespace tigon::call {

// In the order of TIGON_OPS. Defined by the file that CMake writes from registry.cpp.in.
const std::vector<tigon_op>& all_ops();

// Adds the passes of a list of signatures.
template <class... Args>
void add_passes(std::tuple<Args...>*, const char* formula, std::vector<tigon_op>* ops) {
  const auto add = [&]<class A>() {
    static const LauncherState<OwnLaunchers> state{{pass_info<A>(), formula}, {}};
    ops->push_back(make_op<A>("fused", &state));
  };
  (add.template operator()<Args>(), ...);
}

}  // namespace tigon::call
