// SPDX-License-Identifier: Apache-2.0
// tigon profile: ten counters of one call, and what binds.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "harness/cli/commands.h"
#include "harness/cli/text/terminal.h"
#include "harness/measure/profile.h"
#include "harness/measure/profiled_call.h"

namespace tigon::cli {
namespace {

namespace fs = std::filesystem;

struct ProfileOptions {
  std::string id, from;
  bool once = false;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UsageError(fmt::format("cannot read {}", path));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A file of our own that is gone at the end.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::string name = (fs::temp_directory_path() / "tigon-ncu-XXXXXX").string();
    const int descriptor = mkstemp(name.data());
    if (descriptor < 0) throw std::runtime_error("cannot make a file in " + name);
    close(descriptor);
    path_ = name;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs ncu on this program's one call; its CSV.
std::string run_ncu(const std::string& id) {
  const TemporaryFile log;
  std::string metrics;
  for (const std::string& metric : ncu_metrics()) metrics += (metrics.empty() ? "" : ",") + metric;
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  std::vector<std::string> words = {"ncu",
                                    "--csv",
                                    "--page",
                                    "raw",
                                    "--print-units",
                                    "base",
                                    "--profile-from-start",
                                    "off",
                                    "--metrics",
                                    metrics,
                                    "--log-file",
                                    log.path(),
                                    self,
                                    "profile",
                                    "--once",
                                    id};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  constexpr int kNoProgram = 127;
  const pid_t child = fork();
  if (child == 0) {
    execvp("ncu", arguments.data());
    _exit(kNoProgram);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram)
    throw std::runtime_error(
        "ncu is not in PATH (it comes with the CUDA Toolkit); the counters of the host executor: "
        "./tigon --device host profile");
  return read_file(log.path());
}

Profile host_profile(const Case& c) {
  const TraceResult trace = run_trace(c);
  if (trace.verdict != Verdict::kPassed)
    throw std::runtime_error(fmt::format("{}: {}", name_of(trace.verdict), trace.reason));
  return profile_of(trace);
}

void print_profile(const Case& c, const Profile& p) {
  fmt::print("{}\n{}\n", case_id(c), p.source);
  for (const Counter& counter : p.counters)
    fmt::print("  {:<30} {:>16}  {}\n", counter.name, counter.value, counter.note);
  fmt::print("{}\n", p.binds);
}

int profile(const ProfileOptions& options) {
  const Case c = parse_case(options.id);
  if (options.once) {
    profiled_call(c);
    return kExitOk;
  }
  const bool on_gpu = default_executor() == "cuda";
  if (!options.from.empty())
    print_profile(c, profile_of(c, parse_ncu(read_file(options.from))));
  else
    print_profile(c, on_gpu ? profile_of(c, parse_ncu(run_ncu(case_id(c)))) : host_profile(c));
  return kExitOk;
}

}  // namespace

void add_profile(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon profile 'rms_norm/forward/fused/bf16/T=16384,H=4096'      with ncu, on a GPU\n"
      "  ./tigon --device host profile 'rms_norm/forward/fused/bf16/T=16,H=4096'\n"
      "  ./tigon profile CASE --from ncu.csv    of ncu --csv --page raw --print-units base\n"
      "Without a GPU the counters are those of the host executor, and labelled so.");
  const auto options = std::make_shared<ProfileOptions>();
  command.option("case", &options->id, "id of the case, as ./tigon bench prints it").required();
  command.option("--from", &options->from, "a CSV file of ncu instead of running it");
  command.flag("--once", &options->once, "what ncu runs: one call between profiler marks");
  command.run([=] { program->exit_code = profile(*options); });
}

}  // namespace tigon::cli
