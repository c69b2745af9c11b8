// SPDX-License-Identifier: Apache-2.0
// The parent's side of a child that runs cases.
#include "harness/run/process/child.h"

#include "harness/run/executor.h"

namespace tigon {

Child::Child(const std::string& program, const std::string& executor, int threads,
             const std::string& plugin)
    : process_({.silent = "no result within {:g} s, killed",
                .exited = "exited with code {} without a verdict"}) {
  start_.words = {program, "child", "--executor", executor, "--threads", std::to_string(threads)};
  if (!plugin.empty()) start_.words.insert(start_.words.end(), {"--impl-from", plugin});
}

Reply Child::ask(const std::string& line, double timeout_s) {
  if (!process_.is_started()) process_.start(start_);
  process_.send(line);
  Reply reply = process_.hear({.silence_s = timeout_s, .is_interrupted = interrupted});
  reply.text += reply.last_words;
  return reply;
}

std::string program_of(const std::string& executor) {
  if (executor == "checked" && !executor_can_check())
    throw UsageError(
        "executor checked: this build has none; builds for the host have it (--device host), but "
        "not with sanitizers");
  // Not by its name: a build during the run replaces the file, and the children must stay the same.
  return "/proc/self/exe";
}

}  // namespace tigon
