// SPDX-License-Identifier: Apache-2.0
// One timed call of a plug-in beside the oracle.
#pragma once
#include <cstdint>
#include <random>

#include "harness/plugin/timed_kernel.h"

namespace tigon::plugin {

// How many of the case's rows the oracle judges: all where that takes it seconds, a sample of them
// where it would take longer. Where rows do not stand alone, as under a mean or a sum over them:
// all if that takes it a minute or two, else 0.
int64_t rows_judged(const Case& c);

// Compares so many rows of one call, chosen at random, with the oracle, which reads the very bytes
// that the kernel was given. Gives the reason of the first output that does not stand; empty when
// all do.
std::string judge_sample(const Case& c, const TimedKernel::Sample& sample, int64_t rows,
                         std::mt19937_64* random);

}  // namespace tigon::plugin
