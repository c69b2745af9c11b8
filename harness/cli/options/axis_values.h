// SPDX-License-Identifier: Apache-2.0
// The grammar of -a/--axis, after nvbench: which values an axis takes instead of the contract's.
//   T=128   V=[32000,128256]   T=[128:1024:128]   T[pow2]=[10:15]   T=[4k,1Ki,0]
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon::cli {

struct AxisValues {
  std::string axis;
  std::vector<int64_t> values;  // in the order given, each once
};

// A size: decimal digits, with k, M, G for powers of 1000 or Ki, Mi, Gi for powers of 1024. Throws
// UsageError.
int64_t parse_size(std::string_view text);

// One argument of -a. Ranges start:stop or start:stop:stride hold both ends; [pow2] makes each
// value an exponent of 2. Throws UsageError, one line that says what is wrong and what would be
// right.
AxisValues parse_axis_values(std::string_view text);

// A size of 1 MiB or more, behind which B may stand: 80GiB, 80G. Throws UsageError that names
// --memory.
int64_t parse_memory(const std::string& text);

// All arguments of -a, each of a `known` axis of `owner` ("a training") and given once. Throws
// UsageError.
std::map<std::string, std::vector<int64_t>> parse_axes(const std::vector<std::string>& arguments,
                                                       const std::vector<std::string>& known,
                                                       const std::string& owner);

// All arguments of -a, checked against the ops they are for: every axis must be one of some op, and
// may be given once. Throws UsageError.
std::map<std::string, std::vector<int64_t>> parse_axes(const std::vector<std::string>& arguments,
                                                       const std::vector<const OpSpec*>& ops);

}  // namespace tigon::cli
