// SPDX-License-Identifier: Apache-2.0
// tigon-controls: the negative controls, over kernels that have the switches of planted faults.
// `tigon converge --controls` starts it; one line of JSON per control.
#include <fmt/format.h>

#include <cstdio>

#include "convergence/controls.h"
#include "harness/json/json.h"
#include "harness/mutants/switch.h"

int main() {
  try {
    tigon::convergence::run_controls([](const char* fault) { tigon::plant(fault); },
                                     [](const tigon::convergence::ControlReport& r) {
                                       fmt::print("{}\n", tigon::Json{{"fault", r.control.fault},
                                                                      {"what", r.control.what},
                                                                      {"caught", r.caught},
                                                                      {"dtype", r.dtype},
                                                                      {"step", r.step},
                                                                      {"reason", r.reason},
                                                                      {"seconds_s", r.seconds_s}}
                                                              .dump());
                                       std::fflush(stdout);
                                     });
  } catch (const std::exception& error) {
    fmt::print(stderr, "tigon-controls: {}\n", error.what());
    return 5;
  }
}
