// The process of one peer: Python, which answers a JSON line with a JSON line
// (tigon_peers/serve.py).
#pragma once
#include <sys/types.h>

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

  // The answer to a request. Starts the process when there is none. Throws ImplementationFault when
  // it crashes or does not answer within `limit_s`; the next request starts another.
  Json ask(const Json& request, double limit_s);

 private:
  void start();
  void end();
  std::string read_line(double limit_s);
  std::string how_it_ended();

  std::string name_, buffer_;
  int socket_ = -1;
  pid_t process_ = -1;
};

}  // namespace tigon::peers
