// SPDX-License-Identifier: Apache-2.0
// A build that goes on during the first stages of a run, of what only a later one starts.
#pragma once
#include <string>

#include "harness/worker/process.h"

namespace tigon::cli {

class LaterBuild {
 public:
  // Starts a shell command, which prints ninja's lines, "[3/40] ...", into the file `log`. An empty
  // command is none. Throws worker::CannotStart.
  LaterBuild(const std::string& command, std::string log);

  // Returns when it has ended, or on Ctrl-C, and shows meanwhile how far it is. Throws
  // std::runtime_error when it failed.
  void wait();

 private:
  void show_until_it_ends();

  std::string log_;
  // Says of its end the exit code alone.
  worker::Process process_{{.exited = "{}"}};
};

}  // namespace tigon::cli
