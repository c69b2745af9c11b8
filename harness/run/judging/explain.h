// SPDX-License-Identifier: Apache-2.0
// A closer look at one failing case, in this process: which threads wrote the wrong elements, and
// what changes when nothing but the order of threads or the old contents of memory does.
#pragma once
#include "harness/run/check.h"

namespace tigon {

// Never throws for what a kernel does; a crash is the parent's to notice (child.h).
Explanation explain_case(const Case& c);

}  // namespace tigon
