// SPDX-License-Identifier: Apache-2.0
// Starting and asking children with planted faults.
#include "harness/mutants/faulty_child.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "harness/mutants/protocol.h"
#include "harness/run/process/wire.h"

namespace tigon {

namespace {

constexpr double kTimeout_s = 20;

// A library brings its executor with it.
Child child_of(const MutantRequest& request, const std::string& executor,
               const std::string& fault) {
  if (!request.libraries) return Child(program_for(request), executor, 1);
  return Child(program_of(default_executor()), default_executor(), 1,
               request.libraries->library_of(fault, executor));
}

}  // namespace

std::string program_for(const MutantRequest& request) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto program = folder / request.program;
  if (access(program.c_str(), X_OK) != 0)
    throw UsageError(
        fmt::format("no program {}: it belongs to builds with tests; ./tigon mutants builds it",
                    program.string()));
  return program.string();
}

FaultyChild::FaultyChild(const MutantRequest& request, const std::string& executor,
                         const std::string& fault)
    : child_(child_of(request, executor, fault)),
      timeout_s_(request.timeout_s > 0 ? request.timeout_s : kTimeout_s) {}

CheckResult FaultyChild::run(const Case& c, const std::string& fault) {
  const std::string request = with_fault(encode(WireRequest{case_id(c), ""}), fault);
  const Reply reply = child_.ask(request, timeout_s_);
  reached_.clear();
  CheckResult result;
  if (reply.kind == Reply::kAnswer) {
    bool last = false;
    result = decode_check(reply.text, &last);
    reached_ = reached_of(reply.text);
    if (last) child_.stop();
    return result;
  }
  result.verdict = reply.kind == Reply::kTimeout   ? Verdict::kTimeout
                   : reply.kind == Reply::kCrashed ? Verdict::kCrashed
                                                   : Verdict::kNotRun;
  result.reason = reply.text;
  return result;
}

}  // namespace tigon
