// SPDX-License-Identifier: Apache-2.0
// Runs a loss behind a linear layer. The engine knows weights, chunks, products and where gradients
// go, and no loss; a pass knows rows and columns of logits, and no product; the logits of
// a second layer it asks of the engine.
//
// Split by rows: for each chunk of c rows
//   logits [c, V] = x w^T + b    GEMM, rounded to the element type
//   logits -> dlogits            the pass, in place
//   dx [c, H] = dlogits w        GEMM
//   dw [V, H] += dlogits^T x     GEMM; several chunks are summed in fp32 and rounded once
//   dbias [V] += sum_c dlogits   another sweep
// Split by vocabulary: two passes over chunks of c columns. The first computes logits [T, c] and
// joins their statistics. The second goes from the last chunk to the first: dlogits,
// dx [T, H] += dlogits w in fp32, dw [c, H] = dlogits^T x. Until dw is written, its memory holds
// logits; logits that fit neither there nor in the scratch are computed twice. A pass that knows
// its rows needs the second alone, and no memory of dw.
#pragma once
#include "kernels/device/scratch_parts.h"
#include "kernels/linear_head/chunks.h"

namespace tigon::linear_head {

// What a loss does with logits. Every call enqueues work and waits for nothing. A pass whose head
// knows its rows has gradient() alone.
template <class T>
class Pass {
 public:
  virtual ~Pass() = default;
  // Whole rows: what is written of them and, where gradients are wanted, dlogits over the logits.
  virtual Status rows(const Chunk<T>&, Stream) const { return {}; }
  // Some columns of all rows: adds them to the rows' statistics, which is_first clears.
  virtual Status add(const Chunk<T>&, bool /*is_first*/, Stream) const { return {}; }
  // What is written of all rows, from their statistics.
  virtual Status finish(Stream) const { return {}; }
  // dlogits over the logits, of what is known of their rows by then.
  virtual Status gradient(const Chunk<T>&, Stream) const { return {}; }
  // The products of a chunk were enqueued. Where rows are cut, dx of its rows is complete.
  virtual Status used(const Chunk<T>&, Stream) const { return {}; }
};

// How a head is cut, with its arrays in the scratch. The head's memory may be missing where only
// sizes are asked for. For float, bf16 and f16, as all below.
template <class T>
Plan<T> plan(const Head<T>& head, ScratchParts* scratch);

// Enqueues the pass over all chunks, and the head's gradients. The head must have passed check().
template <class T>
Status run(const Head<T>& head, const Plan<T>& plan, const Pass<T>& pass, Stream stream);

// Enqueues the product of a chunk's logits.
template <class T>
Status compute_logits(const Head<T>& head, const Plan<T>& plan, const Chunk<T>& chunk,
                      Stream stream);

// gemm_tune() for the products of all chunks.
template <class T>
Status tune(const Head<T>& head, const Plan<T>& plan);

}  // namespace tigon::linear_head
