// SPDX-License-Identifier: Apache-2.0
// bench --peers: what people would use instead, in Python, each in a process of its own, measured
// in the same run as ours.
#pragma once
#include <string>
#include <vector>

#include "harness/measure/measure_cell.h"

namespace tigon::peers {

// The names there are: of the files NAME_peer.py in harness/peers and in the folders that the
// environment's TIGON_PEERS lists with colons.
std::vector<std::string> known();

// Makes the peers of a list with commas implementations of every pass, and returns their names.
// Throws UsageError with the known names for one that there is not. Once per process.
std::vector<std::string> use(const std::string& names);

// Starts their processes, whose imports and compilers take longer than most measurements, on what
// these cells need: a command that does something else first calls this before it, and wait() when
// it measures. What cannot be started says so when it is measured.
void start(const std::vector<std::string>& names, const std::vector<Cell>& cells);
// Until they have done that.
void wait(const std::vector<std::string>& names);

struct PeerOptions {
  Bases bases = Bases::kAll;
  // Times alone: shares of the ceilings of the run instead of those measured again beside each
  // peer, and nothing is compared with the oracle.
  bool quick = false;
  // Most time of an answer: torch.compile's first kernel needs half a minute, QuACK's tuning three.
  double limit_s = 280;
};

bool is_peer(const std::string& implementation);

// Peers import and compile, all at once. Then our implementations of the cell by
// tigon::measure_cell, and each peer's in a block of its own with the ceilings measured again, in
// every other cell the peers first; then the error of all against the oracle ("accuracy" records).
// What a peer cannot do is recorded with the reason.
void measure_cell(const Cell& cell, const Ceilings& ceilings, const StoppingRule& rule,
                  const Emit& emit, const PeerOptions& options);

}  // namespace tigon::peers
