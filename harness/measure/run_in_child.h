// SPDX-License-Identifier: Apache-2.0
// Work in a forked child that sends JSON lines: a crash, a hang or a sticky device error costs what
// was at hand and never the run. The parent must not have used the device before.
#pragma once
#include <functional>
#include <string>

#include "harness/record/record_writer.h"

namespace tigon {

using Emit = std::function<void(const Json&)>;

struct WorkerEnd {
  enum Kind { kDone, kFailed, kCrashed, kTimeout, kInterrupted } kind = kDone;
  std::string reason;  // of all but kDone: one line
};

// Runs work(emit) in a child and calls on_line in this process for every line it emits. The child
// is killed when nothing came for `silence_s` seconds or after Ctrl-C (harness/run/check.h); with
// `grace_s`, Ctrl-C first makes interrupted() true in the child, which has so many seconds to end
// by itself. An exception of `work` ends it as kFailed with its text.
WorkerEnd run_in_child(const std::function<void(const Emit&)>& work, const Emit& on_line,
                       double silence_s, double grace_s = 0);

}  // namespace tigon
