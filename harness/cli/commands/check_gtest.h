// SPDX-License-Identifier: Apache-2.0
// GoogleTest's flags in tigon check.
#pragma once
#include <string>
#include <vector>

#include "harness/cli/stages.h"
#include "harness/run/check.h"

namespace tigon::cli {

// Reads the --gtest_ flags. Those that make no sense for cases in child processes are not accepted.
void init_googletest(const std::vector<std::string>& flags);

// Do GoogleTest's flags choose among the cases?
bool gtest_chooses();

// What GoogleTest, which runs once, does not see of more than one suite.
void say_what_gtest_leaves_out(const CheckOptions& options, size_t suites);

// The largest request goes through GoogleTest, which runs once per process; the sharding of its
// environment variables has been done.
void run_through_googletest(const CheckRequest& request, const CheckSink& sink);

}  // namespace tigon::cli
