// SPDX-License-Identifier: Apache-2.0
// Every row of a huge case against launches on slices of its rows, whose offsets are small.
#pragma once
#include "harness/run/judging/huge.h"
#include "harness/run/judging/huge_case.h"
#include "harness/run/memory/tiled_launch.h"

namespace tigon {

// Compares all outputs that have rows, bit by bit. Throws Stop where one differs.
void require_equal_slices(const HugeCase& huge, const HugeLimits& limits, const TiledLaunch& whole);

}  // namespace tigon
