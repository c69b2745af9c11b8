// SPDX-License-Identifier: Apache-2.0
// The judge's side of tigon-plugin-host: starts it, talks to it, keeps the clock, and says how it
// ended.
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "harness/plugin/protocol.h"
#include "harness/run/judging/implementation_fault.h"
#include "harness/worker/process.h"

namespace tigon::plugin {

class PluginProcess {
 public:
  explicit PluginProcess(std::string library) : library_(std::move(library)) {}
  ~PluginProcess() { stop(); }
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  // The ops that the library has, and its sandbox: {"ops": [...], "sandbox"}. Throws UsageError for
  // one that is not as tigon.h says, ImplementationFault when its code ends the process or hangs.
  const Json& description();

  // At least `bytes` of shared memory, which a call's tensors take; page aligned.
  char* memory(size_t bytes);

  // Sends {"do": what, ...} and waits for the answer. Throws ImplementationFault when the library
  // throws, ends its process or does not answer in time.
  Json ask(Json request);

  // The same for a timed call; *seconds is our clock from telling it to start until it said that
  // the device has finished.
  Json ask_timed(Json request, double* seconds);

  // Seconds that ask_timed needs for nothing, median of 101 (on the host the least), measured
  // before the library was loaded. 0 unless set_wants_overhead(true) was called before the process
  // was started.
  double overhead() const { return overhead_; }
  // Measures it again, with the library loaded: it can only become less.
  void measure_overhead_again() { overhead_ = std::min(overhead_, measure_overhead()); }
  void set_wants_overhead(bool wants) { wants_overhead_ = wants; }

  // Seconds for one answer; 0: no limit.
  void set_limit(double seconds) { limit_s_ = seconds; }

  const std::string& library() const { return library_; }
  pid_t pid() const { return process_.pid(); }
  // Processes that the library started and that still run.
  std::vector<pid_t> strays() const;

  // Ends the process and what it left; the next call starts a fresh one.
  void stop();

 private:
  void start();
  void load();
  double measure_overhead();
  Json receive();
  std::string answered(const worker::Heard& heard);
  [[noreturn]] void fail(Verdict verdict, const std::string& text);

  std::string library_;
  bool wants_overhead_ = false;
  double limit_s_ = 0, overhead_ = 0;
  worker::Process process_{{.exited = "ended its process with exit code {}"}};
  std::optional<worker::SharedMemory> memory_;
  pid_t started_ = -1;
  Json description_;
  const char* doing_ = "";
};

}  // namespace tigon::plugin
