// The judge's side of tigon-plugin-host.
#include "harness/plugin/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>

#include "harness/plugin/process_watch.h"
#include "harness/run/check.h"

namespace tigon::plugin {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kTailBytes = 4096;  // of what the library prints; the rest is read and dropped
constexpr int kTickMs = 100;
// A process that ends closes its socket first; giving back a GPU's memory takes it up to a second.
constexpr int kEndMs = 3000;
constexpr int kOverheadSamples = 101;
constexpr size_t kMemoryStep = size_t{1} << 20;

// Every host process of ours that is alive.
std::set<pid_t>& alive() {
  static std::set<pid_t> pids;
  return pids;
}

[[noreturn]] void fail_to(const char* what, int error) {
  throw std::runtime_error(fmt::format("plug-in: {}: {}", what, std::strerror(error)));
}

std::string host_program() {
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path program = self.parent_path() / "tigon-plugin-host";
  if (access(program.c_str(), X_OK) != 0)
    throw std::runtime_error(
        fmt::format("no program {}: build the target tigon", program.string()));
  return program;
}

// Without our own variables; a pool of threads must not spin after its work.
std::vector<std::string> environment() {
  std::vector<std::string> variables = {"OMP_WAIT_POLICY=passive"};
  for (char** v = environ; *v != nullptr; ++v)
    if (std::strncmp(*v, "TIGON_", 6) != 0 && std::strncmp(*v, "OMP_WAIT_POLICY=", 16) != 0)
      variables.emplace_back(*v);
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& t : texts) result.push_back(t.data());
  result.push_back(nullptr);
  return result;
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void close_and_forget(int* descriptor) {
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
}

}  // namespace

void PluginProcess::spawn() {
  int sockets[2], output[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    fail_to("socketpair", errno);
  if (pipe2(output, O_CLOEXEC) != 0) fail_to("pipe", errno);
  if (shared_ < 0) {
    shared_ = memfd_create("tigon-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    // The library must not take memory away under our feet.
    if (shared_ < 0 || fcntl(shared_, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
      fail_to("memfd_create", errno);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDERR_FILENO);
  // Through high numbers, so that neither overwrites what the other is copied from.
  const int socket = fcntl(sockets[1], F_DUPFD_CLOEXEC, 64);
  const int memory = fcntl(shared_, F_DUPFD_CLOEXEC, 64);
  posix_spawn_file_actions_adddup2(&actions, socket, kSocketDescriptor);
  posix_spawn_file_actions_adddup2(&actions, memory, kMemoryDescriptor);
  posix_spawn_file_actions_addclosefrom_np(&actions, kMemoryDescriptor + 1);
  const std::string program = host_program();
  std::vector<std::string> words = {program, "serve"}, variables = environment();
  const int error = posix_spawn(&pid_, program.c_str(), &actions, nullptr, pointers(words).data(),
                                pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  for (int d : {socket, memory, sockets[1], output[1]}) close(d);
  socket_ = sockets[0];
  output_ = output[0];
  fcntl(output_, F_SETFL, O_NONBLOCK);
  if (error != 0) {
    pid_ = -1;
    stop();
    fail_to("cannot start tigon-plugin-host", error);
  }
  alive().insert(pid_);
}

void PluginProcess::start() {
  if (pid_ >= 0) return;
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans of the library become ours, so that we see them
  output_tail_.clear();
  spawn();
  if (wants_overhead_) overhead_ = measure_overhead();
  load();
}

double PluginProcess::measure_overhead() {
  std::vector<double> samples(kOverheadSamples);
  for (double& s : samples) ask_timed({{"do", "empty"}}, &s);
  // On the host a wake-up on a busy machine may take longer than a call: the least is what every
  // call pays, and no honest call returns sooner.
  const size_t which = default_executor() == "cuda" ? kOverheadSamples / 2 : 0;
  std::nth_element(samples.begin(), samples.begin() + which, samples.end());
  return samples[which];
}

void PluginProcess::load() {
  Json reply = ask({{"do", "load"}, {"path", library_}});
  if (reply.contains("bad_library")) {
    stop();
    throw UsageError(
        fmt::format("--impl-from {}: {}", library_, reply["bad_library"].get<std::string>()));
  }
  description_ = std::move(reply);
}

const Json& PluginProcess::description() {
  start();
  return description_;
}

char* PluginProcess::memory(size_t bytes) {
  start();
  if (bytes <= memory_bytes_) return memory_;
  const size_t wanted = (bytes + kMemoryStep - 1) / kMemoryStep * kMemoryStep;
  if (ftruncate(shared_, static_cast<off_t>(wanted)) != 0) fail_to("shared memory", errno);
  void* mapped = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, shared_, 0);
  if (mapped == MAP_FAILED) fail_to("shared memory", errno);
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
  memory_ = static_cast<char*>(mapped);
  memory_bytes_ = wanted;
  return memory_;
}

Json PluginProcess::ask(Json request) {
  static const std::set<std::string> kNoStart = {"load", "empty"};
  const std::string what = request.at("do");
  if (kNoStart.count(what) == 0) start();
  request["bytes"] = memory_bytes_;
  doing_ = what == "load" ? "while it was loaded" : "in the call";
  send_packet(socket_, request);  // when it has ended, the missing answer is noticed below
  return receive();
}

Json PluginProcess::ask_timed(Json request, double* seconds) {
  const Json armed = ask(std::move(request));
  if (!armed.contains("armed")) return armed;
  const auto begin = Clock::now();
  send_byte(socket_, kGo);
  wait_for_done();
  *seconds = since(begin);
  return receive();
}

Json PluginProcess::receive() {
  const auto begin = Clock::now();
  for (;;) {
    pollfd descriptors[2] = {{socket_, POLLIN, 0}, {output_, POLLIN, 0}};
    const int ready = poll(descriptors, output_ < 0 ? 1 : 2, kTickMs);
    if (output_ >= 0 && ready > 0 && descriptors[1].revents != 0) drain_output();
    if (ready > 0 && descriptors[0].revents != 0) {
      std::optional<Json> reply = receive_packet(socket_);
      if (!reply) fail(Verdict::kCrashed, "");
      if (reply->contains("fault"))
        throw ImplementationFault(
            Verdict::kRuntimeError,
            fmt::format("the library {} {}{}", (*reply)["fault"].get<std::string>(), doing_,
                        last_words()));
      return std::move(*reply);
    }
    if (ready == 0 && has_ended()) fail(Verdict::kCrashed, "");
    if (limit_s_ > 0 && !(since(begin) < limit_s_))
      fail(Verdict::kTimeout, fmt::format("no answer within {:g} s", limit_s_));
  }
}

// On a GPU our clock must not include a wake-up; on the host the library may want every core.
void PluginProcess::wait_for_done() {
  const bool spin = default_executor() == "cuda";
  const auto begin = Clock::now();
  for (;;) {
    pollfd descriptors[2] = {{socket_, POLLIN, 0}, {output_, POLLIN, 0}};
    const int ready = poll(descriptors, output_ < 0 ? 1 : 2, spin ? 0 : kTickMs);
    if (ready > 0 && descriptors[0].revents != 0) {
      char got = 0;
      if (recv(socket_, &got, 1, 0) != 1 || got != kDone) fail(Verdict::kCrashed, "");
      return;
    }
    if (output_ >= 0 && ready > 0 && descriptors[1].revents != 0) drain_output();
    if (ready == 0 && !spin && has_ended()) fail(Verdict::kCrashed, "");
    if (limit_s_ > 0 && !(since(begin) < limit_s_))
      fail(Verdict::kTimeout, fmt::format("no answer within {:g} s", limit_s_));
  }
}

void PluginProcess::drain_output() {
  char bytes[4096];
  const ssize_t n = read(output_, bytes, sizeof bytes);
  if (n > 0) output_tail_.append(bytes, static_cast<size_t>(n));
  if (n == 0) close_and_forget(&output_);
  if (output_tail_.size() > kTailBytes) output_tail_.erase(0, output_tail_.size() - kTailBytes);
}

bool PluginProcess::has_ended() {
  if (pid_ < 0) return true;
  if (waitpid(pid_, &status_, WNOHANG) != pid_) return false;
  alive().erase(pid_);
  pid_ = -1;
  return true;
}

void PluginProcess::fail(Verdict verdict, const std::string& what) {
  std::string text = what;
  for (int i = 0; output_ >= 0 && i < 16; ++i) {  // what it said before it died
    pollfd descriptor = {output_, POLLIN, 0};
    if (poll(&descriptor, 1, 0) <= 0) break;
    drain_output();
  }
  if (text.empty()) {
    for (int i = 0; i < kEndMs && !has_ended(); ++i) usleep(1000);
    const bool gone = pid_ < 0;
    text = !gone ? "closed its connection to the judge"
           : WIFSIGNALED(status_)
               ? fmt::format("ended by signal {} ({})", WTERMSIG(status_),
                             strsignal(WTERMSIG(status_)))
               : fmt::format("ended its process with exit code {}", WEXITSTATUS(status_));
  }
  text = fmt::format("the library {} {}{}", text, doing_, last_words());
  stop();
  throw ImplementationFault(verdict, text);
}

// The last line that it printed, if any.
std::string PluginProcess::last_words() const {
  std::string text = output_tail_;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (const size_t start = text.rfind('\n'); start != std::string::npos) text.erase(0, start + 1);
  if (text.size() > 200) text.resize(200);
  for (char& ch : text)
    if (static_cast<unsigned char>(ch) < 0x20) ch = ' ';
  return text.empty() ? "" : fmt::format("; it said: {}", text);
}

std::vector<pid_t> PluginProcess::strays() const {
  return started_by(pid_, {alive().begin(), alive().end()});
}

void PluginProcess::stop() {
  if (shared_ >= 0)  // it was started
    for (pid_t stray : strays()) kill(stray, SIGKILL);
  if (pid_ >= 0) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    alive().erase(pid_);
    pid_ = -1;
  }
  close_and_forget(&socket_);
  close_and_forget(&output_);
  close_and_forget(&shared_);
  if (memory_ != nullptr) munmap(memory_, memory_bytes_);
  memory_ = nullptr;
  memory_bytes_ = 0;
}

}  // namespace tigon::plugin
