// SPDX-License-Identifier: Apache-2.0
// A small part of many cases in which every kind of case is met.
#pragma once
#include <vector>

#include "harness/run/cases/case.h"

namespace tigon {

// Where a property, an option's value and a layout are met.
enum class InTypes { kEach, kAny };

// Of each op, pass and implementation: every size of each axis, and in each element type every
// input set, and in each or any type every value of an option, layout and exact property, at least
// once; of a baseline each element type and value of an option, and with kEach each input set. In
// the order given. Greedy, so that few cases do (Chvatal 1979). Deterministic.
std::vector<Case> each_kind_once(const std::vector<Case>& cases, InTypes in_types = InTypes::kEach);

// What `tigon run` shows of them: each kind once in any type, of cases that move few bytes and have
// no long axis (has_long_axis). The others take as long as all of these, and on a GPU so do
// baselines on every input set: cuDNN compiles for each case.
std::vector<Case> part_of_run(std::vector<Case> cases);

}  // namespace tigon
