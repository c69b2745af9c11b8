// SPDX-License-Identifier: Apache-2.0
// tigon-debug-<op>: one call of one case in this process, for a debugger. `tigon debug` starts it.
#include <cstdio>
#include <cstdlib>

#include "harness/run/memory/device_case.h"
#include "kernels/simt/simt.h"

namespace {

constexpr size_t kStack = size_t{1} << 18;  // a thread's frames are large without optimisation

// "3,0,0" or "3".
void parse_block(const char* text, unsigned (&block)[3]) {
  for (int i = 0; i < 3 && *text != '\0'; ++i) {
    char* end = nullptr;
    block[i] = static_cast<unsigned>(std::strtoul(text, &end, 10));
    text = *end == ',' ? end + 1 : end;
  }
}

int run(const char* id, const char* block, const char* thread) {
  tigon::simt::Config& config = tigon::simt::config();
  config.os_threads = 1;
  config.stack = kStack;
  config.fused = false;  // a warp reduction as its shuffles
  config.stop = true;
  parse_block(block, config.stop_block);
  config.stop_thread = static_cast<unsigned>(std::strtoul(thread, nullptr, 10));
  const tigon::Problem problem = tigon::make_problem(tigon::parse_case(id));
  tigon::DeviceCase on_device(problem);
  on_device.run(0);
  return tigon::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "started by ./tigon debug, not by itself\n");
    return tigon::kExitUsage;
  }
  try {
    return run(argv[1], argv[2], argv[3]);
  } catch (const tigon::Stop& stop) {
    std::fprintf(stderr, "%s: %s\n", name_of(stop.verdict), stop.reason.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return tigon::kExitIncorrect;
}
