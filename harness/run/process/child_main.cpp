// SPDX-License-Identifier: Apache-2.0
// The child's side: reads requests, runs cases, answers each with one line.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "harness/run/executor.h"
#include "harness/run/judging/explain.h"
#include "harness/run/judging/runner.h"
#include "harness/run/process/child.h"
#include "harness/run/process/wire.h"
#include "harness/worker/channel.h"

namespace tigon {

namespace {

// When memory runs out the system ends this process and not the one that holds the results.
void be_first_to_go() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, "1000", 4);
  close(file);
}

// Every case needs the megabytes again that the case before has freed. Giving them back to the
// system, which clears them again, takes a good part of the time of large cases.
void keep_freed_memory() {
#ifdef TIGON_CUDA
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most there is; what is larger is given back
#else
  mallopt(M_MMAP_MAX, 0);  // of any size
#endif
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

void set_limits() {
  worker::begin_worker(!on_gpu() && !executor_checks());
  be_first_to_go();
  keep_freed_memory();
}

std::string answer(const std::string& line, bool* last) {
  const WireRequest request = decode_request(line);
  const Case c = parse_case(request.id);
  if (request.what == "trace") return encode(trace_case(c));
  if (request.what == "explain") return encode(explain_case(c));
  const CheckResult result = run_case(c, request.save_folder, last);
  return encode(result, *last);
}

}  // namespace

int child_main(int argc, char** argv, const std::function<void(const std::string&)>& prepare,
               const std::function<std::string(const std::string&)>& add) {
  int threads = 1;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--threads") threads = std::atoi(argv[i + 1]);
    if (flag == "--executor" && !become_executor(argv[i + 1])) {
      std::cerr << "this program has the executor " << this_executor() << ", not " << argv[i + 1]
                << "\n";
      return kExitUsage;
    }
  }
  if (!worker::is_worker()) {
    std::cerr << "tigon child is started by tigon itself\n";
    return kExitUsage;
  }
  set_limits();
  executor_watch_prefetches();
  executor_set_threads(threads);
  worker::Channel channel;
  channel.hide();
  bool last = false;
  while (const auto line = last ? std::nullopt : channel.receive()) {
    if (prepare) prepare(*line);
    const std::string text = answer(*line, &last);
    if (!channel.send(add ? add(text) : text)) return kExitInfrastructure;
  }
  return kExitOk;
}

}  // namespace tigon
