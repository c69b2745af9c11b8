// The process of one peer: Python, which answers a JSON line with a JSON line
// (tigon_peers/serve.py).
#pragma once
#include <sys/types.h>

#include <chrono>
#include <string>

#include "harness/record/record_writer.h"

namespace tigon::peers {

// The Python that the person chose with TIGON_PYTHON, else python3.
std::string python_interpreter();

class PeerProcess {
 public:
  explicit PeerProcess(std::string name) : name_(std::move(name)) {}
  ~PeerProcess() { end(); }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // Hands over a request. Starts the process when there is none, which a thread must not do that
  // ends before the bench: Linux kills the process with the thread that started it. Throws
  // ImplementationFault when it cannot be started.
  void send(const Json& request);
  // The answer to the last request. Throws ImplementationFault when the process crashes or has not
  // answered `limit_s` after the request; the next request starts another.
  Json receive(double limit_s);

 private:
  void start();
  void end();
  std::string read_line(double limit_s);
  std::string how_it_ended();

  std::string name_, buffer_;
  std::chrono::steady_clock::time_point sent_;
  int socket_ = -1;
  pid_t process_ = -1;
};

}  // namespace tigon::peers
