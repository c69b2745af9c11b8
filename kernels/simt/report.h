// SPDX-License-Identifier: Apache-2.0
// Findings: noted on a fiber with addresses only, and given source lines on the host thread when
// the launch has ended.
#pragma once
#include <cstdint>
#include <string>

#include "kernels/signature/status.h"
#include "kernels/simt/simt.h"

namespace tigon::simt {

struct Block;
struct Launch;
struct Thread;
struct Warp;
struct Worker;

// The other side of a race.
struct EarlierAccess {
  uint64_t block;  // linear in the grid
  unsigned thread;
  const void* pc;
};

// Notes a finding of the running CUDA thread at `pc` (an address behind the call or access).
// Findings of one kind at one place are counted, not repeated.
void add_finding(Kind kind, const void* pc, const std::string& what,
                 const EarlierAccess* earlier = nullptr);
// The same for a thread that need not be running; `t` may be nullptr.
void add_finding_of(const Thread* t, Kind kind, const void* pc, const std::string& what,
                    const EarlierAccess* earlier = nullptr);

void report_deadlock(const Worker& w);
void report_early_exit(const Block& b);
void report_divergent_barrier(const Block& b, const void* pc);
void report_divergent_collective(const Warp& w, unsigned lane, unsigned other);
void report_undefined_shuffle(const Warp& w, unsigned lane, unsigned source);
void report_lane_not_in_mask(const Thread& t, uint32_t mask);

// Number of findings since the last reset, repeated ones included.
size_t findings();
// kLaunchFailed with the text of the first finding after `before`, or ok.
Status status_since(size_t before);

}  // namespace tigon::simt
