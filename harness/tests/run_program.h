// SPDX-License-Identifier: Apache-2.0
// Runs the built tigon program, which lies beside the test program, and takes what it printed.
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "harness/tests/temporary_folder.h"

namespace tigon {

struct ProgramRun {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string out, err;

  std::string last_line() const {
    const std::string text = out.substr(0, out.find_last_not_of('\n') + 1);
    return text.substr(text.rfind('\n') + 1);
  }
};

inline std::filesystem::path tigon_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tigon";
}

// `interrupt_when`: sends SIGINT once this file has that many bytes.
struct InterruptWhen {
  std::filesystem::path file;
  uintmax_t bytes = 0;
};

// tigon `arguments` in `folder`, with `variables` ("NAME=value") added to the environment.
// stdout goes to `stdout_file` if given.
inline ProgramRun run_tigon(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& variables = {},
                            const InterruptWhen& interrupt_when = {},
                            const std::string& stdout_file = "") {
  const TemporaryFolder folder;
  const std::string out = stdout_file.empty() ? (folder.path() / "out").string() : stdout_file;
  const std::string err = (folder.path() / "err").string();
  std::vector<std::string> words = {"tigon"}, environment = variables;
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  };
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = -1;
  const int error = posix_spawn(&child, tigon_program().c_str(), &actions, nullptr,
                                pointers(words).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + tigon_program().string());

  if (!interrupt_when.file.empty()) {
    std::error_code absent;
    for (int tick = 0; tick < 3000; ++tick) {  // at most 30 s
      const uintmax_t size = std::filesystem::file_size(interrupt_when.file, absent);
      if (!absent && size >= interrupt_when.bytes) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(child, SIGINT);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const auto text_of = [](const std::string& path) {
    std::stringstream text;
    if (std::filesystem::is_regular_file(path)) text << std::ifstream(path).rdbuf();
    return text.str();
  };
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), text_of(out),
          text_of(err)};
}

}  // namespace tigon
