// SPDX-License-Identifier: Apache-2.0
// Negative controls: faults planted in the kernels must make a training's evidence fail.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace tigon::convergence {

struct Control {
  std::string fault;  // the switch in the kernels' source
  std::string what;
};
const std::vector<Control>& controls();

struct ControlReport {
  Control control;
  bool caught = false;
  std::string dtype;   // of the evidence that failed
  int step = 0;        // from 1, the first at which it shows; 0: none
  std::string reason;  // what noticed it, or that nothing did
  double seconds_s = 0;
};

// Runs the evidence on kernels without a fault, which must pass, then on each fault, which must
// fail: the gradients of the first steps in f32 and bf16, then the losses of 20 steps in f32.
// `plant` chooses the fault of this process, "" for none. Without a fault the control is the empty
// one, caught when it fails.
void run_controls(const std::function<void(const char*)>& plant,
                  const std::function<void(const ControlReport&)>& sink);

}  // namespace tigon::convergence
