// SPDX-License-Identifier: Apache-2.0
// The launch shape of a case that names one.
#include "harness/run/judging/chosen_launch.h"

#include <fmt/format.h>

#include "harness/run/cases/launch_shapes.h"
#include "harness/run/memory/stop.h"

namespace tigon {

ChosenLaunch::ChosenLaunch(const Case& c) {
  if (c.launch == 0) return;
  const auto asked = launch_question(c);
  const int others = asked ? static_cast<int>(asked->others.size()) : 0;
  if (c.launch < 0 || c.launch > others)
    throw Stop{
        Verdict::kUnsupported,
        fmt::format("launch={}: this launch can take {} shapes beside its own", c.launch, others)};
  key_ = asked->key;
  launch_table().choose(*key_, asked->others[static_cast<size_t>(c.launch) - 1]);
}

ChosenLaunch::~ChosenLaunch() {
  if (key_) launch_table().forget(*key_);
}

}  // namespace tigon
