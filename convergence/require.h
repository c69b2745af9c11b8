// SPDX-License-Identifier: Apache-2.0
// A failed launch, or memory that is not there, ends a training.
#pragma once
#include <fmt/format.h>

#include "convergence/converge.h"
#include "kernels/signature/status.h"

namespace tigon::convergence {

inline void require(const Status& s, const char* what) {
  if (s.code == Status::kOutOfMemory) throw OutOfMemory(fmt::format("{}: {}", what, s.reason));
  if (!s.ok()) throw ConvergeError(5, fmt::format("{} failed: {}", what, s.reason));
}

}  // namespace tigon::convergence
