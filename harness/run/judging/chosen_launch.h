// SPDX-License-Identifier: Apache-2.0
// The launch shape of a case that names one, while it runs.
#pragma once
#include <optional>

#include "harness/run/cases/case.h"
#include "kernels/device/launch_table.h"

namespace tigon {

// Throws Stop, unsupported, where the case's launch has no such shape.
class ChosenLaunch {
 public:
  explicit ChosenLaunch(const Case& c);
  ~ChosenLaunch();
  ChosenLaunch(const ChosenLaunch&) = delete;
  ChosenLaunch& operator=(const ChosenLaunch&) = delete;

 private:
  std::optional<LaunchTable::Key> key_;
};

}  // namespace tigon
