// SPDX-License-Identifier: Apache-2.0
// Writes a case as .npy files and a manifest.json, so that anybody can judge it with numpy.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/run/check.h"
#include "harness/run/judging/oracle.h"
#include "harness/run/memory/device_case.h"

namespace tigon {

// Writes into `folder` (created): <tensor>.input.npy, <tensor>.oracle.npy, <tensor>.scale.npy,
// <tensor>.intermediate.npy, <tensor>.underflow.npy (float64) and <tensor>.output.npy, in the
// stored type (bf16 as uint16 bits), and manifest.json with the case, the verdict, each tensor's
// files and the numbers of its budget. Throws std::runtime_error when a file cannot be written.
void save_case(const std::string& folder, const Problem& problem,
               const std::map<std::string, Expected>& expected, const OutputBytes& outputs,
               const CheckResult& result);

}  // namespace tigon
