// SPDX-License-Identifier: Apache-2.0
// Starting the Python that the person chose (TIGON_PYTHON), else python3.
#include "harness/cli/python.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "harness/cli/text/terminal.h"
#include "harness/peers/peer_process.h"
#include "harness/record/build_info.h"
#include "harness/run/check.h"

namespace tigon::cli {
namespace {

// Runs a program found in PATH to its end; 128 + signal when it was killed, -1 when it cannot
// start.
int run_program(std::vector<std::string> words, std::vector<std::string> environment) {
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "PYTHONPATH=", 11) != 0) environment.push_back(*variable);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
  };
  std::fflush(stdout);
  pid_t child = -1;
  if (posix_spawnp(&child, words[0].c_str(), nullptr, nullptr, pointers(words).data(),
                   pointers(environment).data()) != 0)
    return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int run_python(const std::vector<std::string>& words, const std::vector<std::string>& packages,
               const std::string& needs) {
  std::vector<std::string> line = {peers::python_interpreter(), "-m"};
  line.insert(line.end(), words.begin(), words.end());
  std::string path = "PYTHONPATH=";
  for (const std::string& folder : packages)
    path += (path.ends_with('=') ? "" : ":") + build_info().source_dir + "/" + folder;
  const int code = run_program(std::move(line), {path});
  if (code == 127 || code == -1)
    print_error(fmt::format("cannot start {}; set TIGON_PYTHON to a {}",
                            peers::python_interpreter(), needs));
  if (interrupted()) return kExitInterrupted;
  const bool known = code == kExitOk || code == kExitUsage || code == kExitNothing;
  return known ? code : static_cast<int>(kExitInfrastructure);
}

}  // namespace tigon::cli
