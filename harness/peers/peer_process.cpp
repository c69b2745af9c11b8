// The process of one peer.
#include "harness/peers/peer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "harness/record/build_info.h"
#include "harness/run/implementation_fault.h"

namespace tigon::peers {
namespace {

using Clock = std::chrono::steady_clock;

// This program's environment with our package in front of what PYTHONPATH has.
std::vector<std::string> environment() {
  std::vector<std::string> all;
  std::string path = build_info().source_dir + "/harness/peers";
  if (const char* more = std::getenv("PYTHONPATH"); more != nullptr && *more != '\0')
    path += std::string(":") + more;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "PYTHONPATH=", 11) != 0) all.emplace_back(*variable);
  all.push_back("PYTHONPATH=" + path);
  all.push_back("PYTHONDONTWRITEBYTECODE=1");
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// What the libraries say goes to the file TIGON_PEER_LOG, if there is one.
const char* log_file() {
  const char* file = std::getenv("TIGON_PEER_LOG");
  return file != nullptr && *file != '\0' ? file : "/dev/null";
}

}  // namespace

std::string python_interpreter() {
  const char* python = std::getenv("TIGON_PYTHON");
  return python != nullptr && *python != '\0' ? python : "python3";
}

void PeerProcess::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error(fmt::format("socketpair: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log_file(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);  // a group of its own: Ctrl-C is not for it, and it ends whole
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> words = {python_interpreter(), "-m", "tigon_peers", name_};
  std::vector<std::string> variables = environment();
  const int error = posix_spawnp(&process_, words[0].c_str(), &actions, &attributes,
                                 pointers(words).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  buffer_.clear();
  if (error == 0) return;
  process_ = -1;
  end();
  throw ImplementationFault(Verdict::kUnsupported,
                            fmt::format("cannot start {}: {}; TIGON_PYTHON chooses another",
                                        words[0], std::strerror(error)));
}

void PeerProcess::end() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (process_ > 0) how_it_ended();
}

// Kills the process and what it started, which changes nothing about one that has ended.
std::string PeerProcess::how_it_ended() {
  int status = 0;
  const bool has_ended = waitpid(process_, &status, WNOHANG) == process_;
  kill(-process_, SIGKILL);
  while (!has_ended && waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

std::string PeerProcess::read_line(double limit_s) {
  for (;;) {
    if (const size_t at = buffer_.find('\n'); at != std::string::npos) {
      const std::string line = buffer_.substr(0, at);
      buffer_.erase(0, at + 1);
      return line;
    }
    const double left = limit_s - std::chrono::duration<double>(Clock::now() - sent_).count();
    if (left <= 0) {
      end();
      throw ImplementationFault(Verdict::kTimeout, fmt::format("no answer within {:g} s", limit_s));
    }
    pollfd waiting{socket_, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(1000 * left) + 1) <= 0) continue;
    char chunk[65536];
    const ssize_t n = read(socket_, chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      usleep(100000);  // its socket closes a little before it has ended
      const std::string how = how_it_ended();
      end();
      throw ImplementationFault(Verdict::kCrashed, how);
    }
    buffer_.append(chunk, static_cast<size_t>(n));
  }
}

void PeerProcess::send(const Json& request) {
  // One that has ended since its last answer has said all that it had to.
  char byte;
  if (process_ > 0 && recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) end();
  if (process_ < 0) start();
  sent_ = Clock::now();
  const std::string line = without_nonfinite(request).dump() + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::send(socket_, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) break;  // reading tells why
    if (n > 0) done += static_cast<size_t>(n);
  }
}

Json PeerProcess::receive(double limit_s) { return Json::parse(read_line(limit_s)); }

}  // namespace tigon::peers
