// SPDX-License-Identifier: Apache-2.0
// OS threads that help with a launch.
#pragma once
#include <functional>

namespace tigon::simt {

struct Launch;

// Calls work(launch) on the calling thread and on as many more as the launch's settings and size
// ask for; returns when all have finished.
void run_on_threads(Launch& launch, void (*work)(Launch&));

}  // namespace tigon::simt
