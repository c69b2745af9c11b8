// The parent's side of a child process: pipes, wall limit, restart.
#include "harness/run/child.h"

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
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace tigon {

namespace {

constexpr size_t kTailBytes = 4096;  // of the child's stdout and stderr, kept for its last words
constexpr int kTickMs = 100;         // how soon Ctrl-C is noticed
// The longest reply has 10 kB. A library that writes to every descriptor must not fill our memory.
constexpr size_t kMostReplyBytes = size_t{64} << 20;

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(error)));
}

struct Pipe {
  int ends[2];  // read, write
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe", errno);
  }
};

void close_and_forget(int* descriptor) {
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
}

// The complete first line of the buffer, taken out of it.
bool take_line(std::string* buffer, std::string* line) {
  const size_t end = buffer->find('\n');
  if (end == std::string::npos) return false;
  *line = buffer->substr(0, end);
  buffer->erase(0, end + 1);
  return true;
}

}  // namespace

Child::Child(std::string program, std::string executor, int threads, std::string plugin)
    : program_(std::move(program)),
      executor_(std::move(executor)),
      plugin_(std::move(plugin)),
      threads_(threads) {}

Child::~Child() { stop(); }

void Child::start() {
  int requests[2];  // a socket, because writing to a pipe whose reader has died raises SIGPIPE
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, requests) != 0) fail("socketpair", errno);
  Pipe results, output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, requests[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, results.ends[1], kResultDescriptor);

  // A group of its own: Ctrl-C reaches the parent alone, and the child is killed with everything
  // that it started.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) sigaddset(&defaults, s);
  posix_spawnattr_setsigdefault(&attributes, &defaults);

  std::vector<std::string> words = {program_,  "child",     "--executor",
                                    executor_, "--threads", std::to_string(threads_)};
  if (!plugin_.empty()) words.insert(words.end(), {"--impl-from", plugin_});
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  const int error =
      posix_spawn(&pid_, program_.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(requests[0]);
  close(results.ends[1]);
  close(output.ends[1]);
  requests_ = requests[1];
  results_ = results.ends[0];
  output_ = output.ends[0];
  result_buffer_.clear();
  output_tail_.clear();
  if (error != 0) {
    pid_ = -1;
    stop();
    fail("cannot start " + program_, error);
  }
}

void Child::stop() {
  close_and_forget(&requests_);
  close_and_forget(&results_);
  close_and_forget(&output_);
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

Reply Child::ask(const std::string& line, double timeout_s) {
  if (pid_ < 0) start();
  const std::string text = line + "\n";
  // When the child has ended, the missing reply is noticed below.
  [[maybe_unused]] const ssize_t sent = send(requests_, text.data(), text.size(), MSG_NOSIGNAL);
  Reply reply = wait_for_line(timeout_s);
  if (reply.kind != Reply::kAnswer) stop();
  return reply;
}

bool Child::read_some(int descriptor, std::string* into) {
  char bytes[4096];
  const ssize_t n = read(descriptor, bytes, sizeof bytes);
  if (n > 0) into->append(bytes, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

Reply Child::wait_for_line(double timeout_s) {
  const auto start = Clock::now();
  std::string line;
  while (!take_line(&result_buffer_, &line)) {
    if (interrupted()) return {Reply::kInterrupted, "interrupted"};
    const double waited = std::chrono::duration<double>(Clock::now() - start).count();
    pollfd descriptors[2] = {{results_, POLLIN, 0}, {output_, POLLIN, 0}};
    const int ready = poll(descriptors, output_ < 0 ? 1 : 2, kTickMs);
    // Only when no result lies here: this process may have been stopped for a while itself.
    if (!(waited < timeout_s) && (ready <= 0 || descriptors[0].revents == 0))
      return {Reply::kTimeout,
              fmt::format("no result within {:g} s, killed{}", timeout_s, last_words())};
    if (ready <= 0) continue;
    if (output_ >= 0 && descriptors[1].revents != 0) {
      if (!read_some(output_, &output_tail_)) close_and_forget(&output_);
      if (output_tail_.size() > kTailBytes) output_tail_.erase(0, output_tail_.size() - kTailBytes);
    }
    if (descriptors[0].revents != 0 && !read_some(results_, &result_buffer_))
      return {Reply::kCrashed, how_it_ended()};
    if (result_buffer_.size() > kMostReplyBytes)
      return {Reply::kCrashed, "wrote garbage where results go, killed" + last_words()};
  }
  return {Reply::kAnswer, line};
}

std::string Child::how_it_ended() {
  while (output_ >= 0) {  // what it said before it died
    pollfd descriptor = {output_, POLLIN, 0};
    if (poll(&descriptor, 1, 0) <= 0 || !read_some(output_, &output_tail_)) break;
  }
  if (output_tail_.size() > kTailBytes) output_tail_.erase(0, output_tail_.size() - kTailBytes);
  int status = 0;
  kill(-pid_, SIGKILL);  // had it only closed the pipe, it would not end by itself
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    const int s = WTERMSIG(status);
    return fmt::format("ended by signal {} ({}){}", s, strsignal(s), last_words());
  }
  return fmt::format("exited with code {} without a verdict{}", WEXITSTATUS(status), last_words());
}

// The last line that it printed, if any.
std::string Child::last_words() const {
  std::string text = output_tail_;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t start = text.rfind('\n');
  if (start != std::string::npos) text.erase(0, start + 1);
  if (text.size() > 200) text.resize(200);
  for (char& ch : text)
    if (static_cast<unsigned char>(ch) < 0x20) ch = ' ';
  return text.empty() ? "" : fmt::format("; it said: {}", text);
}

std::string program_of(const std::string& executor) {
  // Not by its name: a build during the run replaces the file, and the children must stay the same.
  const std::filesystem::path self = "/proc/self/exe";
  if (executor != "checked") return self.string();
  const std::filesystem::path program =
      std::filesystem::read_symlink(self).parent_path() / "tigon-checked";
  if (access(program.c_str(), X_OK) != 0)
    throw UsageError(
        fmt::format("executor checked: no program {}; it belongs to host builds (--device host)",
                    program.string()));
  return program.string();
}

}  // namespace tigon
