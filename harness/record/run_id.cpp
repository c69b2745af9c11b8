// SPDX-License-Identifier: Apache-2.0
// Names and times of runs.
#include "harness/record/run_id.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <random>

namespace tigon {

std::string utc_now() {
  using namespace std::chrono;
  const auto now = floor<milliseconds>(system_clock::now());
  const auto second = floor<seconds>(now);
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(system_clock::to_time_t(second)),
                     (now - second).count());
}

std::string new_run_id() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y%m%dT%H%M%SZ}-{:08x}", fmt::gmtime(now), std::random_device{}());
}

}  // namespace tigon
