// SPDX-License-Identifier: Apache-2.0
// The smallest case that still fails: options, layout, inputs and axes are made simpler one after
// the other for as long as the case goes on to fail.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "harness/run/cases/case.h"

namespace tigon {

struct Shrunk {
  Case smallest;
  // What it cannot do without, e.g. "casting=gemma", "shift=1", "inputs=offset".
  std::vector<std::string> needs;
  int tries = 0;
  bool finished = true;  // false: time ran out, a smaller one may exist
};

// `fails` runs a case and says whether it fails in the same way; `more` is asked before each try.
Shrunk shrink(const Case& failing, const std::function<bool(const Case&)>& fails,
              const std::function<bool()>& more);

}  // namespace tigon
