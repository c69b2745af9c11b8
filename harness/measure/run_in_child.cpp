// SPDX-License-Identifier: Apache-2.0
// Work in a worker that sends JSON lines.
#include "harness/measure/run_in_child.h"

#include <unistd.h>

#include "harness/run/check.h"
#include "harness/worker/process.h"

namespace tigon {
namespace {

constexpr const char* kDoneKey = "worker_done";
constexpr const char* kErrorKey = "worker_error";

void send(int socket, const Json& line) {
  if (!worker::send_line(socket, without_nonfinite(line).dump())) _exit(1);  // the parent is gone
}

void do_work(int socket, const std::function<void(const Emit&)>& work) {
  try {
    work([socket](const Json& line) { send(socket, line); });
    send(socket, {{kDoneKey, true}});
  } catch (const std::exception& error) {
    send(socket, {{kErrorKey, error.what()}});
  }
}

WorkerEnd end_of(const worker::Heard& heard) {
  switch (heard.kind) {
    case worker::Heard::kTimeout:
      return {WorkerEnd::kTimeout, heard.text};
    case worker::Heard::kInterrupted:
      return {WorkerEnd::kInterrupted, heard.text};
    default:
      return {WorkerEnd::kCrashed, heard.text};
  }
}

}  // namespace

WorkerEnd run_in_child(const std::function<void(const Emit&)>& work, const Emit& on_line,
                       double silence_s, double grace_s) {
  worker::Process process({.silent = "no result within {:g} s",
                           .exited = "ended with exit code {} in the middle of its work"});
  process.fork([&](int socket) { do_work(socket, work); });
  for (;;) {
    const worker::Heard heard =
        process.hear({.silence_s = silence_s, .is_interrupted = interrupted, .grace_s = grace_s});
    if (heard.kind != worker::Heard::kAnswer) return end_of(heard);
    const Json line = Json::parse(heard.text);
    if (!line.contains(kErrorKey) && !line.contains(kDoneKey)) {
      on_line(line);
      continue;
    }
    process.let_end();
    if (line.contains(kErrorKey)) return {WorkerEnd::kFailed, line[kErrorKey]};
    return {};
  }
}

}  // namespace tigon
