// SPDX-License-Identifier: Apache-2.0
// tigon mutants --in SOURCE: somebody's source as libraries, each with one fault.
#pragma once
#include <string>

#include "harness/mutants/score.h"

namespace tigon::cli {

// Builds the source as it is and with each fault of the request, in the folder of this build, and
// puts them into the request. Returns the exit code: where one cannot be built, a line has said
// why. Throws UsageError when the source has no kernel where a fault is to be caught.
int build_faulty_libraries(const std::string& source, MutantRequest* request);

}  // namespace tigon::cli
