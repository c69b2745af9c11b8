// SPDX-License-Identifier: Apache-2.0
// Host executor of CUDA kernels: settings, findings and traffic counters, for the harness and
// tests. Kernels run on fibers, one per CUDA thread; see kernel_api.h for what they call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tigon::simt {

// Order in which runnable CUDA threads run. The three besides kSequential draw from `seed`; several
// policies find more than several seeds of one (a missing barrier that kUniform never shows is
// certain under kReverse).
enum class Schedule {
  kSequential,  // warp after warp, lane after lane
  kUniform,     // any runnable thread
  kAhead,       // one warp runs as far ahead as it can
  kReverse,     // last warp and lane first
};

struct Config {
  unsigned os_threads = 0;  // 0: one per core
  Schedule schedule = Schedule::kSequential;
  uint64_t seed = 1;
  bool strict = true;  // report divergent barriers, collectives and early exits
  bool poison =
      true;  // fill fresh shared and device memory with 0xff bytes: NaN in every float type
  bool sm_90 = true;     // false: launches and copies that a GPU before it has not are refused
  bool fused = true;     // warp_reduce in one suspension; false where accesses are checked
  bool count = true;     // traffic counters, where accesses are checked
  size_t stack = 32768;  // bytes per CUDA thread, a power of two
  // For a debugger: tigon_debugger_stop() is called before this thread of this block starts.
  bool stop = false;
  unsigned stop_block[3] = {}, stop_thread = 0;
};
// Read at each launch; change it only between launches.
Config& config();

// Whether launches of this host thread run; else they are noted, and neither they nor products run.
bool runs();
void set_runs(bool runs);

// Whether this process watches every access of kernel code. set_checked() begins that, once and
// before anything else here is used; it needs can_check(): kernels that are compiled for it.
bool can_check();
void set_checked();
bool checked();
// In a process that does not: bulk prefetches of what was not allocated here are findings, too.
// Before anything is allocated, where a kernel is called with no other memory.
void watch_prefetches();

enum class Kind {
  kRace,
  kUninitialized,
  kOutOfBounds,
  kMisaligned,
  kDivergentBarrier,
  kDivergentCollective,
  kDeadlock,
  kClusterStart,
  kClusterExit,
  kAsyncCopy,
  kFence,
  kDependency,
  kUndefined,
  kFault,
  kTrap,
  kInvalidLaunch,
};
const char* name_of(Kind kind);

// Where and by whom. `file` is relative to the source tree; line 0 means that the line is not known
// and file names the program and the offset in it.
struct Site {
  unsigned block[3] = {};
  unsigned thread = 0;  // linear index in the block
  std::string file;
  unsigned line = 0;
};

struct Report {
  Kind kind = Kind::kFault;
  std::string kernel;
  Site at;
  bool has_earlier = false;
  Site earlier;         // the other access of a race
  std::string message;  // one line that says all of the above
  size_t count = 1;     // findings of this kind at this place
};
// Findings of all launches since the last reset, in the order of their first appearance.
std::vector<Report> reports();
void reports_reset();

// Kernels that were launched since the last call, by name, each once.
std::vector<std::string> take_launched();

// A kernel that this program has: a function called ..._kernel of a file in kernels/.
struct Kernel {
  std::string name;  // "rms_norm::forward_kernel<bf16, 256>"
  std::string file;  // relative to the source tree
};
std::vector<Kernel> kernels();

// What the launches of one kernel did to memory. Counted where accesses are checked.
struct Counters {
  uint64_t launches = 0;
  uint64_t global_load_bytes = 0;
  uint64_t global_store_bytes = 0;
  uint64_t global_load_requests = 0;  // warp instructions
  uint64_t global_store_requests = 0;
  uint64_t global_load_sectors = 0;  // 32-byte sectors touched, summed over requests
  uint64_t global_store_sectors = 0;
  uint64_t shared_requests = 0;
  uint64_t shared_conflicts = 0;  // wavefronts beyond those that a request without conflicts needs
  uint64_t barriers = 0;          // __syncthreads and cluster_sync, per block
  uint64_t atomics = 0;           // per thread
  Counters& operator+=(const Counters& other);
};
// By kernel name, e.g. "rms_norm::forward_kernel<bf16, 256>".
std::map<std::string, Counters> counters();
void counters_reset();

// The same by line of the kernels' source: loads, stores, shared memory and atomics.
struct LineCounters {
  std::string file;
  unsigned line = 0;
  Counters counters;
};
std::vector<LineCounters> line_counters();

// Who wrote a byte of device memory last; known where accesses are checked.
struct Writer {
  bool known = false;
  uint64_t block = 0;   // linear index in the grid
  unsigned thread = 0;  // in the block
  std::string file;
  unsigned line = 0;
};
std::vector<Writer> writers(const std::vector<const void*>& addresses);

}  // namespace tigon::simt
