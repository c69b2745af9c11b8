// SPDX-License-Identifier: Apache-2.0
// tigon doctor: what this machine has, what is missing and the cure.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "convergence/cudnn_attention.h"
#include "harness/cli/commands.h"
#include "harness/cli/text/build_times.h"
#include "harness/cli/text/terminal.h"
#include "harness/measure/device_facts.h"
#include "harness/record/build_info.h"
#include "harness/record/environment.h"
#include "harness/run/check.h"
#include "harness/spec/op_spec.h"
#include "kernels/device/runtime.h"

namespace tigon::cli {
namespace {

enum class State { kOk, kMissing, kOptional };

// One line: what, whether it is there, what was found or how to get it.
void say(State state, std::string_view what, const std::string& text) {
  const char* name = state == State::kOk ? "ok" : state == State::kMissing ? "missing" : "absent";
  const Color color = state == State::kOk        ? Color::kGreen
                      : state == State::kMissing ? Color::kRed
                                                 : Color::kYellow;
  fmt::print("{}{:<{}} {:<20} {}\n", colored(name, color), "", 8 - std::strlen(name), what, text);
}

// Path of a program in PATH, or empty.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = folder + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

// Says where a program is. `need`: its absence is a fault.
bool program(const char* name, bool need, const char* cure) {
  std::string path = find_program(name);
  if (path.empty() && std::strcmp(name, "nvcc") == 0 &&
      access("/usr/local/cuda/bin/nvcc", X_OK) == 0)
    path = "/usr/local/cuda/bin/nvcc";
  const bool found = !path.empty();
  say(found ? State::kOk : need ? State::kMissing : State::kOptional, name, found ? path : cure);
  return found || !need;
}

void library(const char* what, const char* file, const char* cure) {
  void* handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
  say(handle != nullptr ? State::kOk : State::kOptional, what, handle != nullptr ? file : cure);
  if (handle != nullptr) dlclose(handle);
}

// The ops that have cuDNN's fused engines, or why this program has none of them.
void cudnn_implementation() {
  std::string ops, absent;
  for (const OpSpec& op : all_ops())
    if (const Implementation* i = find_implementation(op.passes.front(), "cudnn")) {
      ops += (ops.empty() ? "" : ", ") + op.name;
      absent = i->absent;
    }
  say(absent.empty() ? State::kOk : State::kOptional, "--impl cudnn",
      absent.empty() ? "fused engines of " + ops : absent);
}

// What this program's trainings attend by.
void attention() {
  const std::string version = convergence::cudnn_attention_version();
  if (!version.empty()) return say(State::kOk, "cuDNN attention", version);
  say(State::kOptional, "cuDNN attention",
      default_executor() == "cuda"
          ? "trainings use our own, slower kernel; pip install nvidia-cudnn-frontend (a header) "
            "and "
            "build again, or set CUDNN_FRONTEND_INCLUDE_DIR"
          : "only a GPU needs it: cudnn_frontend.h, for the attention of trainings");
}

// The first interpreter that can write the report, looked for where ./tigon looks.
bool python_modules() {
  const char* chosen = std::getenv("TIGON_PYTHON");
  const std::string candidates[] = {chosen == nullptr ? "" : chosen, "python3", "/usr/bin/python3",
                                    build_info().source_dir + "/build/python/bin/python3"};
  for (const std::string& python : candidates) {
    if (python.empty()) continue;
    const std::string command =
        fmt::format("'{}' -c 'import matplotlib, jinja2, numpy' >/dev/null 2>&1", python);
    if (std::system(command.c_str()) != 0) continue;
    say(State::kOk, "report (Python)", python + " with matplotlib, jinja2, numpy");
    return true;
  }
  say(State::kMissing, "report (Python)",
      "no python3 imports matplotlib, jinja2 and numpy; sudo apt-get install python3-matplotlib "
      "python3-jinja2 python3-numpy, or set TIGON_PYTHON");
  return false;
}

bool disk_space() {
  constexpr double kEnough = 1e9;  // a build and some runs
  std::error_code error;
  const auto space = std::filesystem::space(".", error);
  const auto available = error ? 0.0 : static_cast<double>(space.available);
  const bool enough = available >= kEnough;
  say(enough ? State::kOk : State::kMissing, "disk space here",
      show_bytes(available) + (enough ? " free" : " free; a build and its results need 1 GB"));
  return enough;
}

bool device() {
  const bool on_gpu = default_executor() == "cuda";
  try {
    const Json block = device_block();
    say(State::kOk, on_gpu ? "GPU" : "host executor",
        on_gpu
            ? fmt::format("{}, {}, driver {}, runtime {}", block["name"].get<std::string>(),
                          show_bytes(block["memory_bytes"].get<double>()),
                          block["driver"].get<std::string>(), block["runtime"].get<std::string>())
            : fmt::format("{} cores, {}", host_block()["cores"].get<int>(),
                          host_block()["cpu"].get<std::string>()));
    return true;
  } catch (const DeviceError& error) {
    say(State::kMissing, "GPU", error.what());
    return false;
  }
}

int examine() {
  const BuildInfo build = build_info();
  say(State::kOk, "tigon",
      fmt::format("{}, preset {}, {}, {}", build.version, build.preset, build.compiler,
                  build.type));
  bool good = program("g++", true, "sudo apt-get install g++");
  good &= program("cmake", true, "sudo apt-get install cmake");
  good &= program("ninja", true, "sudo apt-get install ninja-build");
  const Json libraries = libraries_block();
  for (const char* name : {"eigen", "googletest", "benchmark", "fmt", "nlohmann_json", "cli11"})
    say(State::kOk, name, libraries[name]);
  good &= device();
  program("nvcc", false,
          "only a GPU needs it: CUDA Toolkit 13, developer.nvidia.com/cuda-downloads");
  program("nvidia-smi", false, "no NVIDIA driver; only a GPU needs it");
  library("cuDNN", "libcudnn.so.9", "only a GPU needs it: cuDNN 9, for the naive baselines");
  cudnn_implementation();
  attention();
  library("cuBLASLt", "libcublasLt.so.13", "only a GPU needs it: part of CUDA Toolkit 13");
  const bool report = python_modules();
  good &= disk_space();
  say(std::filesystem::exists("/usr/share/common-licenses") ? State::kOk : State::kOptional,
      "training text", "/usr/share/common-licenses; ./tigon converge --data takes any other");
  const char* device_text = default_executor() == "cuda"
                                ? "check, bench and converge run on the GPU"
                                : "check, bench (traffic and memory) and converge run on the CPU";
  fmt::print("{}{}\n",
             good ? device_text : "something is missing: see the lines above for the cure",
             report ? "" : "; the report needs the Python modules above");
  return good ? kExitOk : kExitInfrastructure;
}

constexpr size_t kShownTimes = 5;

int show_build_times() {
  const std::filesystem::path build =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const std::vector<BuildTime> times = build_times(build);
  double total = 0;
  for (const BuildTime& time : times) total += time.seconds;
  if (times.empty()) throw std::runtime_error("nothing has been compiled in " + build.string());
  fmt::print("slowest translation unit: {}, {:.1f} s\n", times[0].source, times[0].seconds);
  for (size_t i = 1; i < std::min(times.size(), kShownTimes); ++i)
    fmt::print("{:>26}{}, {:.1f} s\n", "", times[i].source, times[i].seconds);
  fmt::print("{} translation units, {:.0f} s together, each when it was last compiled\n",
             times.size(), total);
  return kExitOk;
}

}  // namespace

void add_doctor(Command command, Program* program) {
  command.footer(
      "Examples:\n"
      "  ./tigon doctor\n"
      "  ./tigon doctor --build     the slowest translation units of this build");
  const auto build = std::make_shared<bool>(false);
  command.flag("--build", build.get(), "where the time of the last builds went");
  command.run([program, build] { program->exit_code = *build ? show_build_times() : examine(); });
}

}  // namespace tigon::cli
