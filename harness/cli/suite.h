// SPDX-License-Identifier: Apache-2.0
// The cases that `tigon check` runs.
#pragma once
#include <functional>
#include <vector>

#include "harness/cli/options/selection.h"

namespace tigon::cli {

using CasesOf = std::function<std::vector<Case>(const CheckRequest&)>;

// The request with its cases, less those of --exclude. On the host the tiny cases on the
// other executors come first, on that of an older GPU those of long rows alone, unless something
// narrower is asked for: an executor, a plug-in library, large sizes, given sizes or cases, a
// budget. Requests without a case are left out.
std::vector<CheckRequest> suite_of(const CheckRequest& request, const Selection& selection,
                                   const CasesOf& cases_of = select_cases);

}  // namespace tigon::cli
