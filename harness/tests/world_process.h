// SPDX-License-Identifier: Apache-2.0
// Starts the program under test in a chosen surrounding, and lets a test hurt it while it runs.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/tests/run_program.h"

namespace tigon::world {

struct Surroundings {
  std::vector<std::string> variables = {};  // NAME=value, set in addition
  std::filesystem::path folder = {};        // working directory; empty: this one
  std::string stdout_file = {};             // empty: collected
  std::function<void()> before_exec = {};   // in the new process, e.g. to set a limit
  std::filesystem::path program = {};       // empty: the world program
};

// The program over the op of world_ops.cpp, as built.
inline std::filesystem::path world_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "faulty" / "tigon";
}

class Process {
 public:
  Process(const std::vector<std::string>& arguments, const Surroundings& s = {}) {
    std::vector<std::string> words = {s.program.empty() ? world_program().string()
                                                        : s.program.string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const std::string out = s.stdout_file.empty() ? path("out") : s.stdout_file;
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    replace(0, "/dev/null", O_RDONLY);
    replace(2, path("err"), O_WRONLY | O_CREAT | O_TRUNC);
    if (out != "inherited") replace(1, out, O_WRONLY | O_CREAT | O_TRUNC);
    for (const std::string& variable : s.variables) putenv(strdup(variable.c_str()));
    putenv(strdup(mark().c_str()));
    if (!s.folder.empty() && chdir(s.folder.c_str()) != 0) _exit(126);
    if (s.before_exec) s.before_exec();
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      kill(pid_, SIGCONT);
      waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }

  // Waits for its end; kills it after `most_s`, then the exit code is 128 + SIGKILL.
  ProgramRun wait(double most_s = 120) {
    const auto start = std::chrono::steady_clock::now();
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      if (waited.count() > most_s) kill(pid_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    pid_ = -1;
    return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), text("out"),
            text("err")};
  }

  // Processes that it has started and that still run.
  std::vector<pid_t> children() const {
    std::vector<pid_t> found;
    std::error_code gone;
    const std::filesystem::path tasks = "/proc/" + std::to_string(pid_) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
      std::ifstream file(task.path() / "children");
      for (pid_t child; file >> child;) found.push_back(child);
    }
    return found;
  }

  // Whether something that it or its children started still runs after its end.
  bool left_something() const {
    std::error_code gone;
    for (const auto& process : std::filesystem::directory_iterator("/proc", gone)) {
      std::ifstream file(process.path() / "environ", std::ios::binary);
      std::stringstream variables;
      if (file) variables << file.rdbuf();
      if (variables.str().find(mark()) != std::string::npos) return true;
    }
    return false;
  }

 private:
  // In the environment of all that comes from it.
  std::string mark() const { return "WORLD_PROCESS=" + folder_.path().string(); }
  static void replace(int descriptor, const std::string& file, int flags) {
    const int opened = open(file.c_str(), flags, 0600);
    if (opened < 0 || dup2(opened, descriptor) < 0) _exit(125);
    if (opened != descriptor) close(opened);
  }
  std::string path(const char* name) const { return (folder_.path() / name).string(); }
  std::string text(const char* name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }

  TemporaryFolder folder_;
  pid_t pid_ = -1;
};

// Waits until `done` holds, at most `most_s`; false when it does not come to hold.
inline bool wait_until(const std::function<bool()>& done, double most_s = 30) {
  const auto start = std::chrono::steady_clock::now();
  while (!done()) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > most_s)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace tigon::world
