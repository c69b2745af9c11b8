// The child's side: reads requests, runs cases, writes results to a descriptor of its own.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "harness/run/child.h"
#include "harness/run/executor.h"
#include "harness/run/explain.h"
#include "harness/run/launch_choices.h"
#include "harness/run/runner.h"
#include "harness/run/wire.h"

namespace tigon {

namespace {

bool is_a(mode_t type, int descriptor) {
  struct stat info {};
  return fstat(descriptor, &info) == 0 && (info.st_mode & S_IFMT) == type;
}

// Moves a descriptor out of the reach of a kernel's prints.
int hide(int descriptor) {
  int hidden = fcntl(descriptor, F_DUPFD_CLOEXEC, 64);
  if (hidden < 0) hidden = fcntl(descriptor, F_DUPFD_CLOEXEC, 4);  // few descriptors are allowed
  close(descriptor);
  return hidden;
}

// When memory runs out the system ends this process and not the one that holds the results.
void be_first_to_go() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, "1000", 4);
  close(file);
}

// Every case needs the megabytes again that the case before has freed: given back to the system and
// cleared by it anew, they are an eighth of the time of linear_cross_entropy's checks.
void keep_freed_memory() {
#ifdef TIGON_CUDA
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most there is; what is larger is given back
#else
  mallopt(M_MMAP_MAX, 0);  // of any size: cross_entropy's checks take a tenth less time
#endif
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

void set_limits() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  be_first_to_go();
  keep_freed_memory();
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
#if !defined(TIGON_CUDA) && !defined(__SANITIZE_ADDRESS__)
  // A GPU's driver and sanitizers reserve far more addresses than memory.
  const auto pages = static_cast<rlim_t>(sysconf(_SC_PHYS_PAGES));
  const rlim_t bytes = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  rlimit memory;
  getrlimit(RLIMIT_AS, &memory);  // the hard limit stays: reserved addresses move the soft one
  memory.rlim_cur = std::min(bytes, memory.rlim_max);
  if (!executor_checks()) setrlimit(RLIMIT_AS, &memory);
#endif
}

bool write_line(int descriptor, std::string line) {
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(descriptor, line.data() + done, line.size() - done);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

std::string answer(const std::string& line, bool* last) {
  const WireRequest request = decode_request(line);
  const Case c = parse_case(request.id);
  if (request.what == "trace") return encode(trace_case(c));
  if (request.what == "explain") return encode(explain_case(c));
  const CheckResult result = run_case(c, request.save_folder, last);
  return encode(result, *last);
}

// The next line of a descriptor; false at its end.
bool read_line(FILE* file, std::string* line) {
  line->clear();
  for (int ch; (ch = std::getc(file)) != EOF;) {
    if (ch == '\n') return true;
    line->push_back(static_cast<char>(ch));
  }
  return false;
}

}  // namespace

int child_main(int argc, char** argv, const std::function<void(const std::string&)>& prepare) {
  int threads = 1;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--threads") threads = std::atoi(argv[i + 1]);
    if (flag == "--executor" && argv[i + 1] != this_executor()) {
      std::cerr << "this program has the executor " << this_executor() << ", not " << argv[i + 1]
                << "\n";
      return kExitUsage;
    }
  }
  if (!is_a(S_IFSOCK, STDIN_FILENO) || !is_a(S_IFIFO, kResultDescriptor)) {
    std::cerr << "tigon child is started by tigon itself\n";
    return kExitUsage;
  }
  set_limits();
  executor_set_threads(threads);
  use_launch_file_of_environment();
  const int results = hide(kResultDescriptor);
  FILE* requests = fdopen(hide(STDIN_FILENO), "r");
  if (open("/dev/null", O_RDONLY) != STDIN_FILENO || !requests) return kExitInfrastructure;

  bool last = false;
  for (std::string line; !last && read_line(requests, &line);) {
    if (prepare) prepare(line);
    if (!write_line(results, answer(line, &last))) return kExitInfrastructure;
  }
  std::fclose(requests);
  return kExitOk;
}

}  // namespace tigon
