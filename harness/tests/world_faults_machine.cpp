// SPDX-License-Identifier: Apache-2.0
// Faults of the machine: no GPU, a driver that is too old, no CUDA toolkit.
#include <cstdlib>

#include "harness/record/build_info.h"
#include "harness/tests/world_faults.h"

namespace tigon::world {
namespace {

namespace fs = std::filesystem;
constexpr const char* kGroup = "machine";

// A tigon of a CUDA build: this one, or that of the preset beside this build.
fs::path cuda_program() {
  if (on_gpu()) return world_program();
  const char* named = std::getenv("TIGON_CUDA_BUILD");
  const fs::path build = world_program().parent_path().parent_path().parent_path();
  return (named != nullptr ? fs::path(named) : build.parent_path() / "cuda") / "bin" / "tigon";
}

// A run on a GPU that is not there says so in one line and leaves no records to mistake for some.
Fault no_gpu(const char* name, const std::string& message,
             const std::function<std::vector<std::string>()>& variables) {
  return {name, kGroup, "exit 5", [=] {
            const fs::path program = cuda_program();
            if (!fs::exists(program))
              return Outcome{{}, "no CUDA build: ./tigon test makes one where nvcc is", {}, -1};
            const TemporaryFolder folder;
            Surroundings s;
            s.program = program;
            s.variables = variables();
            const ProgramRun run =
                Process({"check", "--out", (folder.path() / "results").string()}, s).wait();
            return Outcome{first_of({expect_code(run, 5), expect_line(run, "no usable GPU"),
                                     expect_line(run, message)}),
                           {},
                           {},
                           run.exit_code};
          }};
}

Outcome no_toolkit() {
  Surroundings s;
  s.program = build_info().source_dir + "/tigon";
  if (!fs::exists(s.program)) return {{}, "the source tree is not there", {}, -1};
  const TemporaryFolder folder;
  // A PATH with what the launcher itself needs, so that an nvcc of this machine is not found.
  for (const char* tool : {"bash", "env", "dirname", "grep", "sed", "id", "head"})
    for (const char* place : {"/usr/bin/", "/bin/"})
      if (fs::exists(std::string(place) + tool) && !fs::exists(folder.path() / tool))
        fs::create_symlink(std::string(place) + tool, folder.path() / tool);
  s.variables = {"PATH=" + folder.path().string(), "CUDA_HOME=/nonexistent"};
  const ProgramRun run = Process({"--device", "cuda", "check"}, s).wait();
  return {first_of({expect_code(run, 5), expect_line(run, "needs nvcc")}), {}, {}, run.exit_code};
}

}  // namespace

std::vector<Fault> machine_faults() {
  return {no_gpu("no GPU", "", [] { return std::vector<std::string>{"CUDA_VISIBLE_DEVICES=-1"}; }),
          no_gpu("driver older than the runtime", "driver version is insufficient",
                 [] {
                   const fs::path folder = world_program().parent_path() / "old_driver";
                   return std::vector<std::string>{"LD_LIBRARY_PATH=" + folder.string()};
                 }),
          {"no CUDA toolkit", kGroup, "exit 5", no_toolkit}};
}

}  // namespace tigon::world
