// SPDX-License-Identifier: Apache-2.0
// Storage and wording of findings.
#include "kernels/simt/report.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <vector>

#include "kernels/simt/symbolize.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {

struct Finding {
  Kind kind;
  const void* kernel;
  dim3 grid;
  uint64_t block;
  unsigned thread;
  const void* pc;
  bool has_earlier;
  EarlierAccess earlier;
  std::string what;
  size_t count;
  size_t last;  // running number of its latest repetition
};

constexpr size_t kMaxFindings =
    100;  // different ones; a broken kernel has the same at every access

std::mutex report_mutex;
std::vector<Finding> stored;
size_t total = 0;

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* pattern, ...) {
  char text[400];
  va_list args;
  va_start(args, pattern);
  vsnprintf(text, sizeof text, pattern, args);
  va_end(args);
  return text;
}

Site site_of(const dim3& grid, uint64_t block, unsigned thread, const void* pc) {
  Site s;
  s.block[0] = static_cast<unsigned>(block % grid.x);
  s.block[1] = static_cast<unsigned>(block / grid.x % grid.y);
  s.block[2] = static_cast<unsigned>(block / grid.x / grid.y);
  s.thread = thread;
  const SourceLine line = source_line(pc);
  s.file = line.file;
  s.line = line.line;
  return s;
}

std::string text_of(const Site& s) {
  std::string text = format("block %u", s.block[0]);
  if (s.block[1] != 0 || s.block[2] != 0) text += format(",%u,%u", s.block[1], s.block[2]);
  text += format(" thread %u", s.thread);
  if (!s.file.empty()) text += " at " + s.file;
  if (s.line != 0) text += format(":%u", s.line);
  return text;
}

Report report_of(const Finding& f) {
  Report r;
  r.kind = f.kind;
  r.kernel = kernel_name(f.kernel);
  r.at = site_of(f.grid, f.block, f.thread, f.pc);
  r.has_earlier = f.has_earlier;
  r.count = f.count;
  r.message = format("%s: ", name_of(f.kind)) + f.what + ", " + text_of(r.at);
  if (f.has_earlier) {
    r.earlier = site_of(f.grid, f.earlier.block, f.earlier.thread, f.earlier.pc);
    r.message += "; earlier access by " + text_of(r.earlier);
  }
  r.message += " [" + r.kernel + "]";
  return r;
}

void symbolize(const std::vector<Finding>& findings) {
  std::vector<const void*> pcs;
  for (const Finding& f : findings) {
    pcs.push_back(f.pc);
    if (f.has_earlier) pcs.push_back(f.earlier.pc);
  }
  resolve(pcs);
}

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kRace:
      return "race";
    case Kind::kUninitialized:
      return "uninitialized read";
    case Kind::kOutOfBounds:
      return "out of bounds";
    case Kind::kMisaligned:
      return "misaligned access";
    case Kind::kDivergentBarrier:
      return "divergent barrier";
    case Kind::kDivergentCollective:
      return "divergent collective";
    case Kind::kDeadlock:
      return "deadlock";
    case Kind::kClusterStart:
      return "cluster start";
    case Kind::kClusterExit:
      return "cluster exit";
    case Kind::kAsyncCopy:
      return "asynchronous copy";
    case Kind::kFence:
      return "missing fence";
    case Kind::kDependency:
      return "dependent launch";
    case Kind::kUndefined:
      return "undefined operation";
    case Kind::kFault:
      return "fault";
    case Kind::kTrap:
      return "trap";
    case Kind::kInvalidLaunch:
      return "invalid launch";
  }
  return "?";
}

void add_finding_of(const Thread* t, Kind kind, const void* pc, const std::string& what,
                    const EarlierAccess* earlier) {
  const Launch& l = *this_worker->launch;
  const void* kernel = l.invocation.kernel;
  const std::lock_guard lock(report_mutex);
  ++total;
  for (Finding& f : stored) {
    if (f.kind != kind || f.pc != pc || f.kernel != kernel) continue;
    ++f.count;
    f.last = total;
    return;
  }
  if (stored.size() >= kMaxFindings) return;
  stored.push_back({kind, kernel, l.shape.grid, t != nullptr ? t->own_block().linear : 0,
                    t != nullptr ? t->linear : 0u, pc, earlier != nullptr,
                    earlier != nullptr ? *earlier : EarlierAccess{}, what, 1, total});
}

void add_finding(Kind kind, const void* pc, const std::string& what, const EarlierAccess* earlier) {
  add_finding_of(&current_thread(), kind, pc, what, earlier);
}

size_t findings() {
  const std::lock_guard lock(report_mutex);
  return total;
}

Status status_since(size_t before) {
  std::vector<Finding> copy;
  {
    const std::lock_guard lock(report_mutex);
    if (total == before) return {};
    copy = stored;
  }
  symbolize(copy);
  // Kept per thread: a Status only points at its reason.
  static thread_local std::string reason;
  reason = "more findings than are stored";
  for (const Finding& f : copy) {
    if (f.last <= before) continue;
    reason = report_of(f).message;
    break;
  }
  return {Status::kLaunchFailed, reason.c_str()};
}

std::vector<Report> reports() {
  std::vector<Finding> copy;
  {
    const std::lock_guard lock(report_mutex);
    copy = stored;
  }
  symbolize(copy);
  std::vector<Report> all;
  for (const Finding& f : copy) all.push_back(report_of(f));
  return all;
}

void reports_reset() {
  const std::lock_guard lock(report_mutex);
  stored.clear();
  total = 0;
}

void report_early_exit(const Block& b) {
  add_finding(Kind::kDivergentBarrier, b.barrier_pc,
              format("__syncthreads reached by %u of %u threads, the others returned early", b.live,
                     b.threads));
}

void report_divergent_barrier(const Block& b, const void* pc) {
  const EarlierAccess other{b.linear, 0, b.barrier_pc};
  add_finding(Kind::kDivergentBarrier, pc,
              "threads of one block wait at two different __syncthreads", &other);
}

void report_divergent_collective(const Warp& w, unsigned lane, unsigned other) {
  const Thread& a = w.threads[lane];
  const Thread& b = w.threads[other];
  const EarlierAccess earlier{b.own_block().linear, b.linear, b.pc};
  add_finding_of(&a, Kind::kDivergentCollective, a.pc,
                 format("lane %u called it with mask %08x and lane %u with mask %08x or another "
                        "operation",
                        lane, w.call[lane].mask, other, w.call[other].mask),
                 &earlier);
}

void report_undefined_shuffle(const Warp& w, unsigned lane, unsigned source) {
  const Thread& t = w.threads[lane];
  add_finding_of(
      &t, Kind::kDivergentCollective, t.pc,
      format("shuffle of lane %u reads lane %u, which does not take part", lane, source));
}

void report_lane_not_in_mask(const Thread& t, uint32_t mask) {
  add_finding_of(&t, Kind::kDivergentCollective, t.pc,
                 format("lane %u calls a collective whose mask %08x leaves it out", t.lane, mask));
}

void report_deadlock(const Worker& w) {
  unsigned waiting[static_cast<int>(State::kDone) + 1] = {};
  const Thread* first = nullptr;
  const Thread* in_warp = nullptr;
  const size_t n = w.blocks.size() * w.warps_per_block * 32;
  for (size_t i = 0; i < n; ++i) {
    const Thread& t = w.threads[i];
    if (t.linear >= w.threads_per_block) continue;
    ++waiting[static_cast<int>(t.state)];
    if (t.state == State::kDone) continue;
    if (first == nullptr) first = &t;
    if (in_warp == nullptr && t.state == State::kAtWarp) in_warp = &t;
  }
  // A lane that waits in its warp is more telling than the threads that wait for it at a barrier.
  const Thread* shown = in_warp != nullptr ? in_warp : first;
  const auto count = [&](State s) { return waiting[static_cast<int>(s)]; };
  add_finding_of(shown, Kind::kDeadlock, shown != nullptr ? shown->pc : nullptr,
                 format("%u threads wait at __syncthreads, %u in a warp collective, %u at "
                        "cluster_sync, %u at an mbarrier, %u have returned",
                        count(State::kAtBlock), count(State::kAtWarp), count(State::kAtCluster),
                        count(State::kAtMbarrier), count(State::kDone)));
}

}  // namespace tigon::simt
