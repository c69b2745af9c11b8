// SPDX-License-Identifier: Apache-2.0
// What an implementation in another process throws when it ended otherwise than by its status.
#pragma once
#include <stdexcept>
#include <string>

#include "harness/judge/verdict.h"

namespace tigon {

// Ends the case with this verdict; what() is the reason.
struct ImplementationFault : std::runtime_error {
  ImplementationFault(Verdict v, const std::string& reason)
      : std::runtime_error(reason), verdict(v) {}
  Verdict verdict;
};

}  // namespace tigon
