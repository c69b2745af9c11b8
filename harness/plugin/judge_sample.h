// One timed call of a plug-in beside the oracle.
#pragma once
#include <cstdint>
#include <random>

#include "harness/plugin/timed_kernel.h"

namespace tigon::plugin {

// How many of the case's rows the oracle judges: all where that takes it seconds, a sample of them
// where it would take longer, and 0 where it would and rows do not stand alone, as under a mean.
int64_t rows_judged(const Case& c);

// Compares so many rows of one call, chosen at random, with the oracle, which reads the very bytes
// that the kernel was given. Outputs that are sums over rows are compared where all rows are. Gives
// the first output's reason that does not stand; empty when all do.
std::string judge_sample(const Case& c, const TimedKernel::Sample& sample, int64_t rows,
                         std::mt19937_64* random);

}  // namespace tigon::plugin
