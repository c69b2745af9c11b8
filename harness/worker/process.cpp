// SPDX-License-Identifier: Apache-2.0
// The parent's end of a worker.
#include "harness/worker/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace tigon::worker {

namespace {

constexpr size_t kTailBytes = 4096;  // of what it prints; the rest is read and dropped
constexpr size_t kLastWordsBytes = 200;
// Much longer than any answer. A library that writes to every descriptor must not fill our memory.
constexpr size_t kMostAnswerBytes = size_t{64} << 20;
constexpr int kTickMs = 100;  // how soon Ctrl-C is noticed
// A process that ends closes its socket first; giving back a GPU's memory takes it up to a second.
constexpr int kEndMs = 3000;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

void close_and_forget(int* descriptor) {
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
}

// A descriptor that is closed at the end of its scope.
struct Descriptor {
  int number = -1;
  ~Descriptor() { close_and_forget(&number); }
  int release() { return std::exchange(number, -1); }
};

// Two connected descriptors; the worker's lies above those that it is given, so that none of them
// overwrites what another is copied from.
struct Ends {
  Descriptor ours, theirs;
  void take(int first, int second) {
    ours.number = first;
    const Descriptor low{second};
    theirs.number = fcntl(second, F_DUPFD_CLOEXEC, kMemoryDescriptor + 1);
    if (theirs.number < 0) fail("descriptor");
  }
};

void make_sockets(Ends* ends) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) fail("socketpair");
  ends->take(pair[0], pair[1]);
}

void make_pipe(Ends* ends) {
  int pair[2];
  if (pipe2(pair, O_CLOEXEC) != 0) fail("pipe");
  ends->take(pair[0], pair[1]);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// posix_spawn's description of a worker.
class Spawn {
 public:
  explicit Spawn(bool has_own_group) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t defaults;
    sigemptyset(&defaults);
    for (int s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) sigaddset(&defaults, s);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    const int flags = POSIX_SPAWN_SETSIGDEF | (has_own_group ? POSIX_SPAWN_SETPGROUP : 0);
    posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }
  ~Spawn() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  void open(int descriptor, const char* file, int flags) {
    posix_spawn_file_actions_addopen(&actions_, descriptor, file, flags, 0644);
  }
  void copy(int from, int to) { posix_spawn_file_actions_adddup2(&actions_, from, to); }
  void close_from(int first) { posix_spawn_file_actions_addclosefrom_np(&actions_, first); }

  pid_t operator()(const Start& start) const {
    pid_t pid = -1;
    const int error =
        posix_spawnp(&pid, start.words.at(0).c_str(), &actions_, &attributes_,
                     pointers(start.words).data(), pointers(start.environment).data());
    if (error != 0)
      throw CannotStart(fmt::format("cannot start {}: {}", start.words[0], std::strerror(error)));
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool is_readable(int descriptor) {
  pollfd waiting = {descriptor, POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<std::string>& changed) {
  const auto name_of = [](std::string_view v) { return v.substr(0, v.find('=') + 1); };
  std::vector<std::string> all = changed;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::none_of(changed.begin(), changed.end(),
                     [&](const std::string& c) { return name_of(c) == name_of(*variable); }))
      all.emplace_back(*variable);
  return all;
}

void Process::start(const Start& start) {
  stop();
  Ends sockets, output;
  make_sockets(&sockets);
  Spawn spawn(start.has_own_group);
  spawn.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  if (start.output.empty()) {
    make_pipe(&output);
    spawn.copy(output.theirs.number, STDOUT_FILENO);
  } else {
    spawn.open(STDOUT_FILENO, start.output.c_str(), O_WRONLY | O_CREAT | O_APPEND);
  }
  spawn.copy(STDOUT_FILENO, STDERR_FILENO);
  Descriptor memory;
  if (start.memory != nullptr) {
    memory.number = fcntl(start.memory->descriptor(), F_DUPFD_CLOEXEC, kMemoryDescriptor + 1);
    if (memory.number < 0) fail("descriptor");
    spawn.copy(memory.number, kMemoryDescriptor);
  }
  spawn.copy(sockets.theirs.number, kSocketDescriptor);
  spawn.close_from(start.memory != nullptr ? kMemoryDescriptor + 1 : kMemoryDescriptor);
  const pid_t pid = spawn(start);
  adopt(pid, sockets.ours.release(), output.ours.release(), start.has_own_group);
}

void Process::fork(const std::function<void(int socket)>& work) {
  stop();
  Ends sockets;
  make_sockets(&sockets);
  std::fflush(nullptr);  // what is buffered must not be printed twice
  const pid_t parent = getpid(), pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it ended before that
    setpgid(0, 0);
    close_and_forget(&sockets.ours.number);
    work(sockets.theirs.number);
    std::fflush(nullptr);
    _exit(0);
  }
  setpgid(pid, pid);  // whoever comes first
  adopt(pid, sockets.ours.release(), -1, true);
}

void Process::adopt(pid_t pid, int socket, int output, bool has_own_group) {
  pid_ = pid;
  socket_ = socket;
  output_ = output;
  has_own_group_ = has_own_group;
  received_.clear();
  output_tail_.clear();
  waits_since_ = Clock::now();
  grace_since_.reset();
}

bool Process::is_gone() const {
  char byte;
  return pid_ < 0 || recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void Process::send(std::string_view line) {
  waits_since_ = Clock::now();
  send_line(socket_, line);
}

void Process::send_byte(char byte) {
  waits_since_ = Clock::now();
  send_bytes(socket_, {&byte, 1});
}

Heard Process::hear(const Patience& patience, Take take) {
  std::string answer;
  while (!(received_.*take)(&answer)) {
    if (grace_is_over(patience)) return ended(Heard::kInterrupted, "interrupted");
    pollfd descriptors[2] = {{socket_, POLLIN, 0}, {output_, POLLIN, 0}};
    const int ready = poll(descriptors, output_ < 0 ? 1 : 2, patience.spins ? 0 : kTickMs);
    const bool has_news = ready > 0 && descriptors[0].revents != 0;
    if (ready > 0 && output_ >= 0 && descriptors[1].revents != 0) drain_output();
    if (has_news && !read_socket()) return ended(Heard::kCrashed, how_it_ended());
    if (received_.size() > kMostAnswerBytes)
      return ended(Heard::kCrashed, "wrote garbage where results go, killed");
    // Only when nothing lies here: this process may have been stopped for a while itself.
    if (!has_news && patience.silence_s > 0 && since(waits_since_) >= patience.silence_s)
      return ended(Heard::kTimeout, fmt::format(fmt::runtime(words_.silent), patience.silence_s));
    // What it started may hold the socket open.
    if (ready == 0 && !patience.spins && has_ended() && !is_readable(socket_))
      return ended(Heard::kCrashed, how_it_ended());
  }
  waits_since_ = Clock::now();
  return {Heard::kAnswer, std::move(answer), ""};
}

bool Process::grace_is_over(const Patience& patience) {
  if (patience.is_interrupted == nullptr || !patience.is_interrupted()) return false;
  if (!grace_since_) {
    grace_since_ = Clock::now();
    if (patience.grace_s > 0) kill(pid_, SIGTERM);
  }
  return since(*grace_since_) >= patience.grace_s;
}

// False at its end.
bool Process::read_socket() {
  char bytes[65536];
  const ssize_t n = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n > 0) received_.append(bytes, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

void Process::drain_output() {
  char bytes[4096];
  const ssize_t n = read(output_, bytes, sizeof bytes);
  if (n > 0) output_tail_.append(bytes, static_cast<size_t>(n));
  if (n == 0) close_and_forget(&output_);
  if (output_tail_.size() > kTailBytes) output_tail_.erase(0, output_tail_.size() - kTailBytes);
}

bool Process::has_ended() const {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid_;
}

// Kills it with its group and returns its status; one that has ended keeps its own.
int Process::reap() {
  kill(has_own_group_ ? -pid_ : pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

void Process::wait_for_end() const {
  for (int waited = 0; waited < kEndMs && !has_ended(); ++waited) usleep(1000);
}

std::string Process::how_it_ended() {
  wait_for_end();
  if (!has_ended()) return "closed its connection";
  const int status = reap();
  if (WIFSIGNALED(status))
    return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format(fmt::runtime(words_.exited), WEXITSTATUS(status));
}

std::string Process::last_words() {
  constexpr int kMostReads = 16;  // a pipe's; what it started may go on printing
  for (int i = 0; i < kMostReads && output_ >= 0 && is_readable(output_); ++i) drain_output();
  std::string text = output_tail_;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (const size_t start = text.rfind('\n'); start != std::string::npos) text.erase(0, start + 1);
  if (text.size() > kLastWordsBytes) text.resize(kLastWordsBytes);
  for (char& ch : text)
    if (static_cast<unsigned char>(ch) < 0x20) ch = ' ';
  return text.empty() ? "" : fmt::format("; it said: {}", text);
}

Heard Process::ended(Heard::Kind kind, std::string text) {
  Heard heard{kind, std::move(text), last_words()};
  stop();
  return heard;
}

void Process::let_end() {
  if (pid_ > 0) wait_for_end();
  stop();
}

void Process::stop() {
  close_and_forget(&socket_);
  close_and_forget(&output_);
  if (pid_ > 0) reap();
}

}  // namespace tigon::worker
