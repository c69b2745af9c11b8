// SPDX-License-Identifier: Apache-2.0
// A worker: a child process that is asked and answers, each a line of JSON. It costs an answer and
// never the run when it crashes, hangs or leaves its device unusable.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/worker/lines.h"
#include "harness/worker/shared_memory.h"

namespace tigon::worker {

// How an owner says that a worker was silent for so many seconds, and that it ended with a code.
struct Words {
  const char* silent = "no answer within {:g} s";
  const char* exited = "ended with exit code {}";
};

// This process' environment; `changed` has NAME=value in place of the variables of these names.
std::vector<std::string> environment_with(const std::vector<std::string>& changed = {});

// With what a worker is started. Of this process it gets no descriptor beside those of lines.h and
// its output.
struct Start {
  // A program, found in PATH if its name has no '/', and its arguments.
  std::vector<std::string> words;
  std::vector<std::string> environment = environment_with();
  std::string output = "";  // file that gets what it prints; empty: kept for its last words
  const SharedMemory* memory = nullptr;
  // A group of its own: Ctrl-C reaches the parent alone, and the worker ends with all that it
  // started. Without, it ends with its parent's group.
  bool has_own_group = true;
};

// What came of waiting.
struct Heard {
  enum Kind { kAnswer, kTimeout, kCrashed, kInterrupted } kind = kAnswer;
  std::string text;        // kAnswer: the line; else how it ended
  std::string last_words;  // not kAnswer: as of Process::last_words()
};

// How long one waits.
struct Patience {
  double silence_s = 0;                // since the last request and the last answer; 0: for ever
  bool (*is_interrupted)() = nullptr;  // asked ten times a second: Ctrl-C
  // Ctrl-C is a SIGTERM for the worker, which then has so many seconds to end by itself.
  double grace_s = 0;
  bool spins = false;  // asks again and again instead of sleeping: the wake-up would count as time
};

struct CannotStart : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Not thread-safe. A worker dies with the thread that started it.
class Process {
 public:
  explicit Process(Words words = {}) : words_(words) {}
  ~Process() { stop(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Starts a program. Throws CannotStart, or std::runtime_error when this process is out of
  // descriptors.
  void start(const Start& start);
  // A copy of this process does work(socket) and exits with 0; it must not throw. What it prints
  // goes where this process' does.
  void fork(const std::function<void(int socket)>& work);

  bool is_started() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }  // -1: none
  // Whether it has ended or closed its socket. Right only while it owes no answer.
  bool is_gone() const;

  // When it has ended, hearing from it tells how.
  void send(std::string_view line);
  void send_byte(char byte);
  // Waits for the next line, or for one byte. Whatever else comes of it ends the worker.
  Heard hear(const Patience& patience) { return hear(patience, &Received::take_line); }
  Heard hear_byte(const Patience& patience) { return hear(patience, &Received::take_byte); }

  // "; it said: " and the last line that it printed, or nothing.
  std::string last_words();

  // Ends it with all that is in its group.
  void stop();
  // The same when it has ended by itself, or has not in the time that giving back a GPU takes.
  void let_end();

 private:
  using Clock = std::chrono::steady_clock;
  using Take = bool (Received::*)(std::string*);

  void adopt(pid_t pid, int socket, int output, bool has_own_group);
  Heard hear(const Patience& patience, Take take);
  bool grace_is_over(const Patience& patience);
  bool read_socket();
  void drain_output();
  bool has_ended() const;
  void wait_for_end() const;
  int reap();
  std::string how_it_ended();
  Heard ended(Heard::Kind kind, std::string text);

  Words words_;
  pid_t pid_ = -1;
  bool has_own_group_ = true;
  int socket_ = -1, output_ = -1;
  Received received_;
  std::string output_tail_;
  Clock::time_point waits_since_;
  std::optional<Clock::time_point> grace_since_;
};

}  // namespace tigon::worker
