// SPDX-License-Identifier: Apache-2.0
// Requests, sectors and bank conflicts of the launches of each kernel.
#include "kernels/simt/traffic.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "kernels/simt/simt.h"
#include "kernels/simt/symbolize.h"
#include "kernels/simt/worker.h"

namespace tigon::simt {

namespace {

// Accesses of one warp instruction, executed once.
struct WarpRequest {
  uint32_t lanes = 0;
  uint32_t offset[32];
};

// One instruction in the current interval of a warp.
struct Instruction {
  const void* pc = nullptr;
  unsigned bytes = 0;
  bool write = false;
  bool shared = false;
  std::array<uint32_t, 32> executed{};  // times, by lane
  size_t used = 0;
  std::vector<WarpRequest> requests;  // the first `used`; the rest is kept for its memory
};

class WarpLog {
 public:
  Instruction& find(const void* pc, unsigned bytes, bool write, bool shared) {
    for (size_t slot = hash(pc);; slot = (slot + 1) % kSlots) {
      const uint16_t i = table_[slot];
      if (i == kEmpty) return add(slot, pc, bytes, write, shared);
      Instruction& found = instructions_[i];
      if (found.pc == pc && found.bytes == bytes && found.write == write && found.shared == shared)
        return found;
    }
  }
  bool full() const { return used_ == kSlots / 2; }
  std::vector<Instruction>& instructions() { return instructions_; }
  size_t used() const { return used_; }
  void clear() {
    if (used_ != 0) table_.fill(kEmpty);
    used_ = 0;
  }

 private:
  static constexpr size_t kSlots = 1024;
  static constexpr uint16_t kEmpty = 0xffff;
  static size_t hash(const void* pc) {
    return (reinterpret_cast<uintptr_t>(pc) * 0x9E3779B97F4A7C15u >> 32) % kSlots;
  }
  Instruction& add(size_t slot, const void* pc, unsigned bytes, bool write, bool shared) {
    table_[slot] = static_cast<uint16_t>(used_);
    if (used_ == instructions_.size()) instructions_.emplace_back();
    Instruction& i = instructions_[used_++];
    i.pc = pc;
    i.bytes = bytes;
    i.write = write;
    i.shared = shared;
    i.executed.fill(0);
    i.used = 0;
    return i;
  }
  std::array<uint16_t, kSlots> table_ = filled();
  static constexpr std::array<uint16_t, kSlots> filled() {
    std::array<uint16_t, kSlots> t{};
    t.fill(kEmpty);
    return t;
  }
  size_t used_ = 0;
  std::vector<Instruction> instructions_;
};

thread_local std::vector<std::unique_ptr<WarpLog>> logs;  // by warp of the cluster
thread_local Counters counted;                            // by this OS thread in this launch
using ByPc = std::unordered_map<const void*, Counters>;
thread_local ByPc counted_by_pc;

std::mutex counts_mutex;  // guards what follows
Counters of_launch;
std::map<const void*, Counters> by_kernel;
ByPc by_pc;

constexpr uint32_t kSectorBytes = 32;
constexpr uint32_t kBanks = 32;
constexpr uint32_t kBankBytes = 4;

// The request's addresses in order.
struct Addresses {
  explicit Addresses(const WarpRequest& r) {
    for (uint32_t m = r.lanes; m != 0; m &= m - 1) at[count++] = r.offset[std::countr_zero(m)];
    if (!std::is_sorted(at, at + count)) std::sort(at, at + count);
  }
  uint32_t at[32];
  unsigned count = 0;
};

void count_global(const Instruction& i, const WarpRequest& r, Counters* counted) {
  const Addresses a(r);
  uint64_t bytes = 0, sectors = 0;
  uint64_t next_byte = 0, next_sector = 0;  // first ones not counted yet
  for (unsigned k = 0; k < a.count; ++k) {
    const uint64_t begin = a.at[k], end = begin + i.bytes;
    bytes += end - std::min(end, std::max(begin, next_byte));
    next_byte = std::max(next_byte, end);
    const uint64_t first = begin / kSectorBytes, last = (end - 1) / kSectorBytes + 1;
    sectors += last - std::min(last, std::max(first, next_sector));
    next_sector = std::max(next_sector, last);
  }
  (i.write ? counted->global_store_requests : counted->global_load_requests) += 1;
  (i.write ? counted->global_store_bytes : counted->global_load_bytes) += bytes;
  (i.write ? counted->global_store_sectors : counted->global_load_sectors) += sectors;
}

// Wavefronts that lanes [first, first + n) need: the largest number of different words in one bank.
unsigned wavefronts(const Instruction& i, const WarpRequest& r, unsigned first, unsigned n) {
  uint32_t words[kBanks * 4];
  unsigned count = 0;
  for (unsigned lane = first; lane < first + n; ++lane) {
    if (((r.lanes >> lane) & 1u) == 0) continue;
    const uint32_t word = r.offset[lane] / kBankBytes;
    const uint32_t end = (r.offset[lane] + i.bytes - 1) / kBankBytes;
    for (uint32_t w = word; w <= end && count < std::size(words); ++w) words[count++] = w;
  }
  std::sort(words, words + count);
  unsigned in_bank[kBanks] = {};
  unsigned most = 0;
  for (unsigned k = 0; k < count; ++k)
    if (k == 0 || words[k] != words[k - 1]) most = std::max(most, ++in_bank[words[k] % kBanks]);
  return most;
}

// 8-byte requests are served by half-warps, 16-byte requests by quarter-warps.
void count_shared(const Instruction& i, const WarpRequest& r, Counters* counted) {
  const unsigned group = i.bytes <= 4 ? 32 : i.bytes == 8 ? 16 : 8;
  ++counted->shared_requests;
  for (unsigned first = 0; first < 32; first += group) {
    const unsigned n = wavefronts(i, r, first, group);
    if (n > 1) counted->shared_conflicts += n - 1;
  }
}

void finish(WarpLog& log) {
  for (size_t k = 0; k < log.used(); ++k) {
    const Instruction& i = log.instructions()[k];
    Counters by_this;
    for (size_t n = 0; n < i.used; ++n) {
      if (i.shared)
        count_shared(i, i.requests[n], &by_this);
      else
        count_global(i, i.requests[n], &by_this);
    }
    counted += by_this;
    counted_by_pc[i.pc] += by_this;
  }
  log.clear();
}

}  // namespace

Counters& Counters::operator+=(const Counters& o) {
  launches += o.launches;
  global_load_bytes += o.global_load_bytes;
  global_store_bytes += o.global_store_bytes;
  global_load_requests += o.global_load_requests;
  global_store_requests += o.global_store_requests;
  global_load_sectors += o.global_load_sectors;
  global_store_sectors += o.global_store_sectors;
  shared_requests += o.shared_requests;
  shared_conflicts += o.shared_conflicts;
  barriers += o.barriers;
  atomics += o.atomics;
  return *this;
}

std::map<std::string, Counters> counters() {
  const std::lock_guard lock(counts_mutex);
  std::map<std::string, Counters> named;
  for (const auto& [kernel, c] : by_kernel) named[kernel_name(kernel)] += c;
  return named;
}

void counters_reset() {
  const std::lock_guard lock(counts_mutex);
  by_kernel.clear();
  by_pc.clear();
}

std::vector<LineCounters> line_counters() {
  const std::lock_guard lock(counts_mutex);
  std::vector<const void*> pcs;
  for (const auto& [pc, c] : by_pc) pcs.push_back(pc);
  resolve(pcs);
  std::map<std::pair<std::string, unsigned>, Counters> by_line;
  for (const auto& [pc, c] : by_pc) {
    const SourceLine at = source_line(pc);
    by_line[{at.file, at.line}] += c;
  }
  std::vector<LineCounters> lines;
  for (const auto& [place, c] : by_line) lines.push_back({place.first, place.second, c});
  return lines;
}

namespace traffic {

void note(const Warp& w, unsigned lane, uint32_t offset, size_t bytes, bool write, bool shared,
          const void* pc) {
  while (logs.size() <= w.index) logs.push_back(std::make_unique<WarpLog>());
  WarpLog& log = *logs[w.index];
  if (log.full()) finish(log);
  Instruction& i = log.find(pc, static_cast<unsigned>(bytes), write, shared);
  const uint32_t k = i.executed[lane]++;
  if (k == i.used) {
    if (i.used == i.requests.size()) i.requests.emplace_back();
    i.requests[i.used++].lanes = 0;
  }
  WarpRequest& r = i.requests[k];
  r.lanes |= 1u << lane;
  r.offset[lane] = offset;
}

void count_atomic(const void* pc) {
  ++counted.atomics;
  ++counted_by_pc[pc].atomics;
}
void count_barrier() { ++counted.barriers; }

void end_of_interval(const Warp& w) {
  if (w.index < logs.size()) finish(*logs[w.index]);
}

void worker_ends(const Worker& w) {
  for (const auto& log : logs) log->clear();  // of an abandoned launch; otherwise empty
  if (w.launch->abandoned) {
    counted = Counters{};
    counted_by_pc.clear();
  }
  const std::lock_guard lock(counts_mutex);
  of_launch += counted;
  for (const auto& [pc, c] : counted_by_pc) by_pc[pc] += c;
  counted = Counters{};
  counted_by_pc.clear();
}

void launch_ends(const Launch& l) {
  const std::lock_guard lock(counts_mutex);
  of_launch.launches = 1;
  by_kernel[l.invocation.kernel] += of_launch;
  of_launch = Counters{};
}

}  // namespace traffic
}  // namespace tigon::simt
