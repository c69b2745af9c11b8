// SPDX-License-Identifier: Apache-2.0
// A call that seems to have been sooner than an empty one.
#pragma once
#include <vector>

namespace tigon::plugin {

// `seconds` of calls less kernel.overhead(); the last is not above 0. The machine may have been
// busier when empty calls were measured, before the library was loaded: they are measured again,
// and all of `seconds` are less the new figure. False where the call is still sooner, which no
// honest one is. A Kernel has overhead() and measure_overhead_again(), after which the former is
// no more than before (timed_kernel.h).
template <class Kernel>
bool stands_after_overhead_again(Kernel& kernel, std::vector<double>* seconds) {
  const double before = kernel.overhead();
  kernel.measure_overhead_again();
  for (double& s : *seconds) s += before - kernel.overhead();
  return seconds->back() > 0;
}

}  // namespace tigon::plugin
