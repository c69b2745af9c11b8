// SPDX-License-Identifier: Apache-2.0
// Inputs and shapes that a library's author cannot know: a kernel that only knows the public ones
// fails.
#pragma once
#include <cstdint>
#include <vector>

#include "harness/run/cases/case.h"

namespace tigon::plugin {

// 64 random bits from the system.
uint64_t draw_secret();

// Each case gets a seed that follows from the secret and its id, so that one that leaks (a record
// of a case that is done) says nothing of the next. Below 2^52: exact in JSON.
void give_secret_seeds(uint64_t secret, std::vector<Case>* cases);

// For each op, pass, implementation and dtype some cases of the list again, with other numbers of
// rows and columns: within the range of the contract's list for the axis and a multiple of what all
// of the list are multiples of.
void add_unlisted_shapes(uint64_t secret, std::vector<Case>* cases);

}  // namespace tigon::plugin
