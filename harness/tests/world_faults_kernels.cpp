// SPDX-License-Identifier: Apache-2.0
// Faults of kernels and of the libraries they lie in: one case pays, the others are judged.
#include "harness/tests/world_faults.h"

namespace tigon::world {
namespace {

constexpr const char* kKernel = "kernel";
constexpr const char* kLibrary = "kernel library";
constexpr const char* kBench = "bench";

std::string reason_of(const RecordFile& file, const std::string& id) {
  for (const Json& r : file.records)
    if (r["record"] == "check" && r["case_id"] == id) return r["reason"];
  return "";
}

Outcome check_with(const std::string& implementation, const std::string& verdict,
                   const std::string& reason, const std::string& executor) {
  const TemporaryFolder folder;
  const std::vector<std::string> all = {"right", implementation, "afterwards"};
  auto words = check_words(all, folder.path());
  if (!executor.empty())
    for (size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == "--executor") words[i + 1] = executor;
  Process process(words);
  const ProgramRun run = process.wait();
  Outcome outcome{.problem = {}, .skipped = {}, .verdict = verdict, .exit_code = run.exit_code};
  outcome.problem = expect_run(run, folder.path(), code_of(verdict),
                               expected_verdicts(all, implementation, verdict));
  if (!outcome.problem.empty()) return outcome;
  const std::string said =
      reason_of(read_records(folder.path() / "records.jsonl"), id_of(implementation, 5));
  if (said.find(reason) == std::string::npos)
    outcome.problem = fmt::format("the reason does not say '{}': {}", reason, said);
  else if (!wait_until([&] { return !process.left_something(); }, 5))
    outcome.problem = "a process was left behind";
  return outcome;
}

// `implementation` fails at one size with `verdict`; the reason holds `reason`.
Fault check_fault(const char* group, const std::string& name, const std::string& implementation,
                  const std::string& verdict, const std::string& reason,
                  const std::string& executor = "") {
  return {name, group, fmt::format("{}, exit {}", verdict, code_of(verdict)),
          [=] { return check_with(implementation, verdict, reason, executor); }};
}

Fault skipped(const char* group, const std::string& name, const char* why) {
  return {name, group, "", [why] { return Outcome{{}, why, {}, -1}; }};
}

// In a bench the cells of the other sizes are measured, and the cell at hand says what happened.
Fault bench_fault(const std::string& name, const std::string& implementation,
                  const std::string& verdict) {
  return {name, kBench, fmt::format("{}, exit {}", verdict, code_of(verdict)), [=] {
            const TemporaryFolder folder;
            std::vector<std::string> words = {"bench",
                                              "--impl",
                                              "right," + implementation,
                                              "--dtype",
                                              "f32",
                                              "--min-time",
                                              "0.01",
                                              "--timeout",
                                              on_gpu() ? "20" : "2",
                                              "--out",
                                              folder.path().string()};
            const ProgramRun run = Process(words).wait();
            const RecordFile file = read_records(folder.path() / "records.jsonl");
            std::map<std::string, std::string> got;
            for (const Json& r : file.records)
              if (r["record"] == "bench")
                got[fmt::format("{} {}", r["impl"].get<std::string>(), r["axes"]["N"].dump())] =
                    r["verdict"];
            std::map<std::string, std::string> want;
            for (const std::string& i : std::vector<std::string>{"right", implementation})
              for (const char* size : {"3", "5", "7"})
                want[i + " " + size] = *size == '5' ? verdict : "passed";
            return Outcome{first_of({expect_code(run, code_of(verdict)),
                                     problem_with(file, code_of(verdict)), difference(got, want)}),
                           {},
                           verdict,
                           run.exit_code};
          }};
}

std::vector<Fault> device_faults() {
  if (on_gpu())
    return {check_fault(kKernel, "sticky CUDA error: illegal address", "illegal_address",
                        "runtime_error", "illegal memory access"),
            check_fault(kKernel, "sticky CUDA error: misaligned address", "misaligned_address",
                        "runtime_error", "misaligned address"),
            check_fault(kKernel, "device assert", "device_assert", "runtime_error", "assert"),
            check_fault(kKernel, "illegal instruction on the device", "illegal_instruction",
                        "runtime_error", ""),
            check_fault(kKernel, "kernel that never ends", "kernel_hang", "timeout", "killed"),
            check_fault(kKernel, "refused launch", "too_many_threads", "runtime_error", ""),
            check_fault(kKernel, "device out of memory", "device_memory", "oom", "on the GPU"),
            bench_fault("sticky CUDA error in a bench", "illegal_address", "runtime_error"),
            bench_fault("kernel that never ends in a bench", "kernel_hang", "timeout"),
            skipped(kKernel, "dead-lock in the checking executor", "host builds only")};
  const char* gpu = "needs a CUDA build and a GPU: ./tigon --device cuda faults";
  return {
      check_fault(kKernel, "kernel writes to address 4", "illegal_address", "runtime_error", ""),
      check_fault(kKernel, "assertion in a kernel", "device_assert", "crashed", "wings"),
      check_fault(kKernel, "trap in a kernel", "illegal_instruction", "runtime_error", ""),
      check_fault(kKernel, "kernel that never ends", "kernel_hang", "timeout", "killed"),
      check_fault(kKernel, "dead-lock of a warp", "dead_lock", "runtime_error", "dead"),
      check_fault(kKernel, "dead-lock in the checking executor", "dead_lock", "runtime_error",
                  "dead", "checked"),
      check_fault(kKernel, "endless loop in the checking executor", "kernel_hang", "timeout",
                  "killed", "checked"),
      check_fault(kKernel, "stack overflow of a CUDA thread", "device_stack", "runtime_error",
                  "stack"),
      check_fault(kKernel, "refused launch", "too_many_threads", "runtime_error", ""),
      check_fault(kKernel, "device out of memory", "device_memory", "oom", "memory"),
      skipped(kKernel, "sticky CUDA error: illegal address", gpu),
      skipped(kKernel, "sticky CUDA error: misaligned address", gpu),
      skipped(kKernel, "device assert", gpu)};
}

}  // namespace

std::vector<Fault> kernel_faults() {
  std::vector<Fault> faults = {
      check_fault(kLibrary, "segmentation fault", "segmentation_fault", "crashed", "signal 11"),
      check_fault(kLibrary, "error that ends the use of a device", "loses_the_device",
                  "runtime_error", "context is gone"),
      check_fault(kLibrary, "abort with a message", "abort", "crashed", "assertion failed: wings"),
      check_fault(kLibrary, "exit(0)", "exit_0", "crashed", "exited with code 0"),
      check_fault(kLibrary, "_exit(0) from a thread", "exit_0_in_thread", "crashed", "code 0"),
      check_fault(kLibrary, "kill -9 of itself", "kills_itself", "crashed", "signal 9"),
      check_fault(kLibrary, "exception", "throws", "runtime_error", "thrown by the library"),
      check_fault(kLibrary, "exception that is a number", "throws_a_number", "crashed", ""),
      check_fault(kLibrary, "exception in a thread", "throws_in_thread", "crashed", "signal 6"),
      check_fault(kLibrary, "stdout flood of 70 MB", "stdout_flood", "passed", ""),
      check_fault(kLibrary, "stderr flood without end", "stderr_flood", "timeout", "killed"),
      check_fault(kLibrary, "endless loop", "endless_loop", "timeout", "killed"),
      check_fault(kLibrary, "hang with a process left behind", "leaves_a_process", "timeout",
                  "killed"),
      check_fault(kLibrary, "stops itself", "stops_itself", "timeout", "killed"),
      check_fault(kLibrary, "stack overflow", "host_stack", "crashed", "signal 11"),
      check_fault(kLibrary, "takes all file descriptors", "takes_all_descriptors", "passed", ""),
      check_fault(kLibrary, "closes all file descriptors", "closes_all_descriptors", "crashed", ""),
      check_fault(kLibrary, "writes to all file descriptors", "writes_to_all_descriptors",
                  "crashed", ""),
      check_fault(kLibrary, "changes locale, folder and umask", "changes_its_surroundings",
                  "passed", ""),
      bench_fault("segmentation fault in a bench", "segmentation_fault", "crashed"),
      bench_fault("exit(0) in a bench", "exit_0", "crashed"),
      bench_fault("hang in a bench", "endless_loop", "timeout"),
  };
  if (!on_gpu()) {  // a GPU's driver reserves far more addresses than memory, so there is no limit
    faults.push_back(
        check_fault(kLibrary, "host out of memory", "host_memory", "oom", "host memory"));
    faults.push_back(check_fault(kLibrary, "host out of memory, unnoticed", "uses_null_of_malloc",
                                 "crashed", "signal 11"));
  }
  for (Fault& fault : device_faults()) faults.push_back(std::move(fault));
  return faults;
}

}  // namespace tigon::world
