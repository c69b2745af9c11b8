// SPDX-License-Identifier: Apache-2.0
// tigon-controls [CONFIG STEPS]: the negative controls, over kernels that have the switches of
// planted faults; without a config on the micro model. `tigon converge --controls` starts it; one
// line of JSON per control.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "convergence/controls.h"
#include "harness/json/json.h"
#include "harness/mutants/switch.h"

namespace {

namespace cv = tigon::convergence;
using tigon::Json;

cv::EvidenceModel model_of(int argc, char** argv) {
  if (argc < 3) return cv::micro_evidence();
  cv::ConvergeRequest request;
  request.config = argv[1];
  request.steps = std::atoi(argv[2]);
  return cv::evidence_of(request);
}

void print(const cv::ControlReport& r) {
  Json parts = Json::array();
  for (const cv::PartReport& p : r.parts)
    parts.push_back(
        {{"part", p.part}, {"verdict", p.verdict}, {"step", p.step}, {"reason", p.reason}});
  const cv::PartReport* first = r.caught();
  fmt::print("{}\n", Json{{"fault", r.control.fault},
                          {"what", r.control.what},
                          {"caught", first != nullptr},
                          {"step", first != nullptr ? first->step : 0},
                          {"reason", first != nullptr ? first->reason : ""},
                          {"parts", parts},
                          {"seconds_s", r.seconds_s}}
                         .dump());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    cv::run_controls(
        model_of(argc, argv), [](const char* fault) { tigon::plant(fault); }, print);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tigon-controls: {}\n", error.what());
    return 5;
  }
}
