// Work in a forked child that sends JSON lines.
#include "harness/measure/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "harness/run/check.h"

namespace tigon {
namespace {

constexpr int kTickMs = 100;  // how soon Ctrl-C is noticed
constexpr const char* kDoneKey = "worker_done";
constexpr const char* kErrorKey = "worker_error";

void send(int descriptor, const Json& line) {
  const std::string text =
      without_nonfinite(line).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) _exit(1);  // the parent is gone
    if (n > 0) done += static_cast<size_t>(n);
  }
}

[[noreturn]] void child_body(int descriptor, const std::function<void(const Emit&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);  // the parent decides
  try {
    work([descriptor](const Json& line) { send(descriptor, line); });
    send(descriptor, {{kDoneKey, true}});
  } catch (const std::exception& error) {
    send(descriptor, {{kErrorKey, error.what()}});
  }
  std::fflush(nullptr);
  _exit(0);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {} in the middle of its work", WEXITSTATUS(status));
}

// Handles the complete lines of `buffer`; false after the child's last one.
bool take_lines(std::string* buffer, const Emit& on_line, WorkerEnd* end) {
  for (size_t at; (at = buffer->find('\n')) != std::string::npos; buffer->erase(0, at + 1)) {
    const Json line = Json::parse(buffer->substr(0, at));
    if (line.contains(kDoneKey)) {
      *end = {WorkerEnd::kDone, ""};
      return false;
    }
    if (line.contains(kErrorKey)) {
      *end = {WorkerEnd::kFailed, line[kErrorKey]};
      return false;
    }
    on_line(line);
  }
  return true;
}

using Clock = std::chrono::steady_clock;

// What becomes of a child after Ctrl-C.
class Grace {
 public:
  Grace(pid_t child, double seconds) : child_(child), seconds_(seconds) {}
  bool is_over() {
    if (!interrupted()) return false;
    if (!begin_) {
      begin_ = Clock::now();
      if (seconds_ > 0) kill(child_, SIGTERM);
    }
    return std::chrono::duration<double>(Clock::now() - *begin_).count() >= seconds_;
  }

 private:
  pid_t child_;
  double seconds_;
  std::optional<Clock::time_point> begin_;
};

// Reads until the child has ended, is silent for too long or Ctrl-C; true when it must be killed.
bool listen(int descriptor, const Emit& on_line, double silence_s, Grace grace, WorkerEnd* end) {
  std::string buffer;
  auto heard = Clock::now();
  char chunk[65536];
  for (;;) {
    if (grace.is_over()) {
      *end = {WorkerEnd::kInterrupted, "interrupted"};
      return true;
    }
    pollfd waiting{descriptor, POLLIN, 0};
    if (poll(&waiting, 1, kTickMs) > 0) {
      const ssize_t n = read(descriptor, chunk, sizeof(chunk));
      if (n == 0) return false;
      if (n < 0) continue;
      heard = Clock::now();
      buffer.append(chunk, static_cast<size_t>(n));
      if (!take_lines(&buffer, on_line, end)) return false;
    } else if (std::chrono::duration<double>(Clock::now() - heard).count() > silence_s) {
      *end = {WorkerEnd::kTimeout, fmt::format("no result within {:g} s", silence_s)};
      return true;
    }
  }
}

}  // namespace

WorkerEnd run_in_child(const std::function<void(const Emit&)>& work, const Emit& on_line,
                       double silence_s, double grace_s) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);  // what is buffered must not be printed twice
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    close(ends[0]);
    child_body(ends[1], work);
  }
  close(ends[1]);
  WorkerEnd end{WorkerEnd::kCrashed, ""};
  bool kill_it = true;
  const auto reap = [&] {
    if (kill_it) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    close(ends[0]);
    return status;
  };
  try {
    kill_it = listen(ends[0], on_line, silence_s, Grace(child, grace_s), &end);
  } catch (...) {
    reap();
    throw;
  }
  const int status = reap();
  if (end.kind == WorkerEnd::kCrashed) end.reason = how_it_ended(status);
  return end;
}

}  // namespace tigon
