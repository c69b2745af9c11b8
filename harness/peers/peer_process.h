// SPDX-License-Identifier: Apache-2.0
// The process of one peer: Python, which answers a JSON line with a JSON line
// (tigon_peers/serve.py).
#pragma once
#include <string>
#include <vector>

#include "harness/record/record_writer.h"
#include "harness/worker/process.h"

namespace tigon::peers {

// The Python that the person chose with TIGON_PYTHON, else python3.
std::string python_interpreter();
// The one that runs the peers: TIGON_PEER_PYTHON, which ./tigon sets to one that has torch, else
// the former.
std::string peer_interpreter();

// Those of `names` whose packages it finds; none where it cannot be started.
std::vector<std::string> installed(const std::vector<std::string>& names);

class PeerProcess {
 public:
  // `memory` is shared with it and outlives it.
  PeerProcess(std::string name, const worker::SharedMemory& memory)
      : name_(std::move(name)), memory_(memory) {}

  // Starts the process, which imports its packages and compiles for these requests. They may be
  // sent after wait(). A thread that ends before that must not do this: Linux kills the process
  // with the thread that started it. Throws ImplementationFault when it cannot be started.
  void prepare(const std::vector<Json>& requests);
  // Waits for what it prepares, if anything; one that takes longer is ended.
  void wait(double limit_s);
  // Hands over a request, and starts the process when there is none.
  void send(Json request);
  // The answer to the last request. Throws ImplementationFault when the process crashes or has not
  // answered `limit_s` after the request; the next request starts another.
  Json receive(double limit_s);

 private:
  // The process, where there is none. Throws ImplementationFault when it cannot be started.
  void start();

  std::string name_;
  const worker::SharedMemory& memory_;
  worker::Process process_;
  bool prepares_ = false;
};

}  // namespace tigon::peers
