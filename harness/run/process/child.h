// SPDX-License-Identifier: Apache-2.0
// Isolation: cases run in child processes, so that a crash, a hang or a sticky CUDA error costs one
// verdict and never the run.
#pragma once
#include <functional>
#include <string>

#include "harness/run/check.h"
#include "harness/worker/process.h"

namespace tigon {

// The other side of Child: `tigon child --executor NAME --threads N`. main() calls it first thing
// when argv[1] is "child". Answers every request until there are no more. `prepare`, if any, sees
// every request line before it is done, and `add` may add to what answers it.
int child_main(int argc, char** argv,
               const std::function<void(const std::string& line)>& prepare = {},
               const std::function<std::string(const std::string& answer)>& add = {});

// kAnswer: a JSON line (wire.h); else `text` says what happened, with the child's last words.
using Reply = worker::Heard;

// One worker at a time, started when needed and again after a crash or a hang. A request asks for
// one case: {"id": ..., "save": folder, "what": "check", "trace" or "explain"}.
class Child {
 public:
  // `program` is started as: program child --executor `executor` --threads `threads`, and
  // --impl-from `plugin` if that is given.
  Child(const std::string& program, const std::string& executor, int threads,
        const std::string& plugin = "");

  // Sends one line and waits for the reply for at most timeout_s; kills the process group after
  // that. Throws std::runtime_error when the program cannot be started.
  Reply ask(const std::string& line, double timeout_s);

  // Ends the process, if any; the next ask() starts a fresh one.
  void stop() { process_.stop(); }

 private:
  worker::Start start_;
  worker::Process process_;
};

// The program whose children have an executor: this one. Throws UsageError when it cannot have it.
std::string program_of(const std::string& executor);

}  // namespace tigon
