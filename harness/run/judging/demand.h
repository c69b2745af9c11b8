// SPDX-License-Identifier: Apache-2.0
// Which values each launch path of a pass must meet, found by asking its launcher.
//
// A path is a kernel as its launcher names it: the function with its launch shape and the form that
// options choose, whatever the element type. f32 has 4 elements in 16 bytes and 16-bit types have
// 8, so a width of either is "vectors". A cluster's blocks run the same kernel and are no part of
// the path.
//
// A value is an option's, a tensor that is left out or given, an input set, a layout or a property.
// A path must meet a value if some launch with it takes the path: of every shape of the plan that
// has rows, in every element type and layout, with every option set of the contract. An input set
// takes no other path than other inputs, so each that the pass reads belongs on every path. A
// property belongs on the paths that its own options and element types take. A shape that only a
// launch table chooses runs the same body with other constants, so it meets options alone. A kernel
// that a pass runs on what its matrix products wrote meets them in the pass of that name of the op
// that runs it on its inputs, where there is one (coverage.cpp). A property that was tried on a
// path and has no call that takes it is ruled out there. What a launcher never does is ruled out,
// with which of these rules says so.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/run/cases/case.h"

namespace tigon {

// "rms_norm::forward_kernel<Policy<bf16, float>, 8, 256>" -> "rms_norm::forward_kernel<*, vectors,
// 256>"
std::string path_of(const std::string& kernel);
// What a case meets: "casting=gemma", "inputs=outliers", "shift", "prop=dtype_twin" and so on.
std::vector<std::string> values_of(const Case& c);

using Launches = std::function<std::vector<std::string>(const Case&)>;

struct Demand {
  using Pairs = std::map<std::string, std::set<std::string>>;  // values by path
  Pairs met;                                                   // that must be
  std::map<std::string, Pairs> ruled_out;                      // by the rule
};

// Of one pass; `planned` are cases of it, whose shapes are asked for.
Demand demand_of(const std::vector<Case>& planned, const Launches& launches);

}  // namespace tigon
