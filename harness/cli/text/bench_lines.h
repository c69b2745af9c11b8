// SPDX-License-Identifier: Apache-2.0
// What tigon bench prints of its records.
#pragma once
#include <string>

#include "harness/json/json.h"

namespace tigon::cli {

// A line for a record of this kind: bench, memory, trace, accuracy or ceiling.
std::string bench_line(const std::string& kind, const Json& record);

}  // namespace tigon::cli
