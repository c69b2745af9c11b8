// SPDX-License-Identifier: Apache-2.0
// Kernels in which one fault each can be planted, for tests of the checker.
#pragma once
#include <cstddef>

#include "kernels/signature/dtype.h"
#include "kernels/signature/status.h"

namespace tigon::simt_tests {

enum class Fault {
  kNone,
  // Block sums.
  kNoBarrierBeforeReuse,   // the readers of the previous sum race with the new partial sums
  kNoBarrierAfterPartial,  // partial sums are read before they are written
  kShuffleInBranch,        // full mask in a branch that some lanes do not take
  kPartialsNotWritten,     // lanes beyond the number of warps read what nobody wrote
  kHalfWarpMask,           // half-warp mask, but all lanes call and reach across it
  kSharedTooShort,         // one element short
  // RMS norm.
  kRowsNotAligned,    // vectors also where rows are not aligned
  kVectorsRoundedUp,  // the last vector reaches past the row
  kEarlyReturn,       // idle threads leave before the barrier
  // Column sums.
  kSamePartialRow,  // all blocks write one row of partial sums
  // Cross entropy.
  kBaseNotAligned,    // takes every row for aligned
  kClusterStart,      // a peer's shared memory before the first cluster barrier
  kClusterExit,       // no cluster barrier after the last access of a peer
  kLabelOverwritten,  // the label's logit is read while its owner overwrites it
  kNoClusterBarrier,  // peers' partial results are read before they are there
  // SwiGLU.
  kTailOneMore,   // <= instead of <
  kInPlaceOrder,  // overwrites a, then needs it: wrong numbers only
  // Exchange within a warp.
  kNoSyncwarp,
  // Pipeline of bulk copies.
  kNoWaitForCopy,   // the consumer does not wait
  kRefillTooEarly,  // the producer does not wait for the consumers
  kWrongByteCount,  // fewer bytes expected than copied
  kNoFence,         // the consumers do not fence what they read
  kNoInitFence,     // of the mbarriers
  kNoInitBarrier,   // some wait at mbarriers that may not be initialised
  // Others.
  kDeadlock,             // one lane waits for its warp, the others for the block
  kReturnBeforeBarrier,  // the second warp; hardware tolerates it
  kWaitTooWeak,          // cp.async: leaves the group that is needed in flight
  kTrap,
  kTwoBarriers,       // the branches of an if wait at different barriers
  kByteRace,          // two threads write one byte
  kCopyLeftInFlight,  // cp.async without a wait
  kBulkCopyMisaligned,
  kPrefetchMisaligned,
  kPrefetchOutOfBounds,
  kNullPointer,
  kStackOverflow,
};

// sums[row] of x[rows][256], one block for all rows.
Status block_sums(Fault fault, const float* x, float* sums, int rows);
// y = x * rstd * w, rows of h elements.
Status rms_norm(Fault fault, const bf16* x, const bf16* w, bf16* y, float* rstd, int rows, int h);
// out[c] += x[r][c] over the rows of each block, then over blocks: partial[4][h], sums[h].
Status column_sums(Fault fault, const float* x, float* partial, float* sums, int rows, int h);
// Losses, and gradients over the logits; `cluster` blocks per row.
Status cross_entropy(Fault fault, bf16* logits, const int* target, float* loss, int rows, int vocab,
                     unsigned cluster);
// y = silu(a) * b.
Status swiglu(Fault fault, const bf16* a, const bf16* b, bf16* y, int n);
// da and db over a and b.
Status swiglu_backward(Fault fault, const bf16* dy, bf16* a, bf16* b, int n);
// Rotates the values of each warp by one lane.
Status rotate(Fault fault, const int* in, int* out);
// sums[row] of x[rows][tiles][1024].
Status pipeline(Fault fault, const float* x, float* sums, int rows, int tiles);
// Kernels that are nothing but their fault, or nothing at all; 64 threads.
Status other(Fault fault, float* x);

}  // namespace tigon::simt_tests
