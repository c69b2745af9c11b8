// SPDX-License-Identifier: Apache-2.0
// What the judge and tigon-plugin-host, a worker (harness/worker), agree upon. The host program
// links neither contracts nor oracles nor the judge.
#pragma once
#include <cstddef>
#include <string>

#include "harness/json/json.h"

namespace tigon::plugin {

// The addresses of tensors are multiples of this plus what the judge shifts them by.
inline constexpr size_t kAlignment = 256;

// Around a timed call: the judge starts its clock and says kGo; the host says kDone, which stops
// it.
inline constexpr char kGo = 'g', kDone = 'd';

// A program that speaks for its kernels itself, in the place of tigon-plugin-host and a library.
inline bool is_program(const std::string& path) {
  return path.size() > 3 && path.rfind(".py") == path.size() - 3;
}

}  // namespace tigon::plugin
