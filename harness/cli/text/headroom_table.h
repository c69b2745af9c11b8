// SPDX-License-Identifier: Apache-2.0
// How near passed cases come to their budget, as text.
#pragma once
#include "harness/run/memory/headroom.h"

namespace tigon::cli {

// Worst error over budget of passed cases, and what should not be exceeded.
void print_headroom(const Headroom& headroom);

}  // namespace tigon::cli
