// SPDX-License-Identifier: Apache-2.0
// Lists of ops, and how they are found by name.
#pragma once
#include <cstring>
#include <tuple>
#include <vector>

#include "kernels/call/erase.h"

namespace tigon::call {

// Adds an op for each signature of a list, e.g. of rms_norm::Passes<BF16>.
template <class Launchers, class... Args>
void add_passes(const char* implementation, std::tuple<Args...>*, const char* formula,
                std::vector<tigon_op>* ops) {
  const auto add = [=]<class A>() {
    static const LauncherState<Launchers> state{{pass_info<A>(), formula}, {}};
    ops->push_back(make_op<A>(implementation, &state));
  };
  (add.template operator()<Args>(), ...);
}

// The ops that add.operator()<P>(&ops) adds for each dtype.
template <class Add>
std::vector<tigon_op> ops_of_every_dtype(const Add& add) {
  std::vector<tigon_op> ops;
  add.template operator()<F32>(&ops);
  add.template operator()<BF16>(&ops);
  add.template operator()<F16>(&ops);
  return ops;
}

// nullptr if there is none.
inline const tigon_op* find(const std::vector<tigon_op>& ops, const char* name, int32_t dtype) {
  for (const tigon_op& op : ops)
    if (op.dtype == dtype && std::strcmp(op.name, name) == 0) return &op;
  return nullptr;
}

}  // namespace tigon::call
