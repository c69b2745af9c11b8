// Isolation: cases run in child processes, so that a crash, a hang or a sticky CUDA error costs one
// verdict and never the run.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/run/check.h"

namespace tigon {

// The other side of Child: `tigon child --executor NAME --threads N`. main() calls it first thing
// when argv[1] is "child". Reads one JSON request per line from stdin and writes one JSON line per
// reply to file descriptor kResultDescriptor; returns when stdin ends. `prepare`, if any, sees
// every request line before it is done.
int child_main(int argc, char** argv,
               const std::function<void(const std::string& line)>& prepare = {});
inline constexpr int kResultDescriptor = 3;

// A request asks for one case: {"id": ..., "save": folder, "what": "check", "trace" or "explain"}.
struct Reply {
  enum Kind { kAnswer, kTimeout, kCrashed, kInterrupted } kind = kAnswer;
  std::string text;  // of kAnswer: a JSON line; else what happened, with the child's last words
};

// One child process at a time, started when needed and again after a crash or a hang. Not
// thread-safe; a child dies with the thread that started it.
class Child {
 public:
  // `program` is started as: program child --executor `executor` --threads `threads`, and
  // --impl-from `plugin` if that is given.
  Child(std::string program, std::string executor, int threads, std::string plugin = "");
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends one line and waits for the reply for at most timeout_s; kills the process group after
  // that. Throws std::runtime_error when the program cannot be started.
  Reply ask(const std::string& line, double timeout_s);

  // Ends the process, if any; the next ask() starts a fresh one.
  void stop();

 private:
  void start();
  Reply wait_for_line(double timeout_s);
  bool read_some(int descriptor, std::string* into);
  std::string how_it_ended();
  std::string last_words() const;

  std::string program_, executor_, plugin_;
  int threads_;
  pid_t pid_ = -1;
  int requests_ = -1, results_ = -1, output_ = -1;
  std::string result_buffer_, output_tail_;
};

// Where the program of an executor lies: this program itself, or tigon-checked beside it. Throws
// UsageError when it is not there.
std::string program_of(const std::string& executor);

}  // namespace tigon
