// SPDX-License-Identifier: Apache-2.0
// What ends a case before its outputs are compared.
#pragma once
#include <string>

#include "harness/judge/verdict.h"

namespace tigon {

// A verdict that ends the case early.
struct Stop {
  Verdict verdict;
  std::string reason;
};

// The same, from a status of the implementation instead of what it did.
struct Refused : Stop {};

}  // namespace tigon
