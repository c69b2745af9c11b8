// SPDX-License-Identifier: Apache-2.0
// What a request chooses of the contracts: the one reading of its ops, passes, implementations,
// dtypes and axes.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/run/check.h"

namespace tigon {

// A list that is empty chooses all.
template <class T>
bool is_chosen(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

// What a size is, for who gave another.
inline constexpr const char* kSizesAre =
    "a size is 1 or more, or 0 where the op can have nothing along the axis";

// Throws UsageError for a name that no chosen op has, and for a size or a shard that cannot be.
void require_possible(const CheckRequest& request);

struct ChosenPass {
  const OpSpec* op;
  const Pass* pass;
};

// Whether a call of the pass is cut over ranks (kRanksOption).
bool is_over_ranks(const Pass& pass);

// In the manifest's order; of a request with ranks only ops over ranks.
std::vector<const OpSpec*> chosen_ops(const CheckRequest& request);
std::vector<ChosenPass> chosen_passes(const CheckRequest& request);

// `unnamed_libraries`: with naive and cudnn where the request names no implementation.
std::vector<const Implementation*> chosen_implementations(const Pass& pass,
                                                          const CheckRequest& request,
                                                          bool unnamed_libraries);

// Of those that are known to an op or an implementation.
std::vector<DType> chosen_dtypes(const std::vector<DType>& known, const CheckRequest& request);

// The sizes that the request gives for an axis, else those that are planned for it.
const std::vector<int64_t>& sizes_of(const AxisPlan& axis, const CheckRequest& request,
                                     const std::vector<int64_t>& planned);

using Shape = std::map<std::string, int64_t>;
using AxisValues = std::vector<std::pair<std::string, std::vector<int64_t>>>;

// Every combination of the sizes, the last axis fastest.
std::vector<Shape> product(const AxisValues& lists);

// The case of a pass with default options and inputs; its sizes are still to be set.
Case plain_case(const ChosenPass& chosen, const std::string& implementation, DType dtype,
                const CheckRequest& request);

}  // namespace tigon
