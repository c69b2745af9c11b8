// SPDX-License-Identifier: Apache-2.0
// What parent and child say to each other: JSON, one line each.
#pragma once
#include <string>

#include "harness/run/check.h"

namespace tigon {

struct WireRequest {
  std::string id;  // of the case
  std::string save_folder;
  std::string what = "check";  // or "trace", "explain"
};

std::string encode(const WireRequest& request);
WireRequest decode_request(const std::string& line);

// `last`: the child ends after this answer, because its device is unusable.
std::string encode(const CheckResult& result, bool last);
CheckResult decode_check(const std::string& line, bool* last);
std::string encode(const TraceResult& trace);
TraceResult decode_trace(const std::string& line);
std::string encode(const Explanation& explanation);
Explanation decode_explanation(const std::string& line);

}  // namespace tigon
