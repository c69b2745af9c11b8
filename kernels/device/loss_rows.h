// Cross entropy of rows of logits, launched by cross_entropy on a whole tensor and by
// linear_cross_entropy on one chunk of rows after the other.
#pragma once
#include "kernels/signature/loss.h"

namespace tigon {

enum class LossPass : int {
  kForward,          // writes loss and lse; logits are not changed
  kBackward,         // reads lse; the gradient takes the place of the logits
  kForwardBackward,  // writes loss and lse; the gradient takes the place of the logits
};

// Rows of logits and what belongs to them, in device memory. T rows, V columns.
template <class Elem>
struct LossRows {
  LossPass pass = LossPass::kForward;
  LossOptions options;
  int64_t rows = 0, columns = 0;
  Elem* logits = nullptr;            // [T, V]
  int64_t stride = 0;                // elements from one row of logits to the next
  const int64_t* target = nullptr;   // [T]
  const int64_t* counted = nullptr;  // [1], from count_rows(); read with reduction mean only
  const float* dloss = nullptr;      // [T] with reduction none, else [1]; nullptr: 1
  float* loss = nullptr;             // [T], not divided by the number of rows
  float* lse = nullptr;              // [T]
};

// Enqueues the pass for all rows; kUnsupported for 2^31 columns or more.
template <class Elem>
Status loss_rows(const LossRows<Elem>& rows, Stream stream);

// Enqueues counted[0] = number of targets that are not ignore_index.
Status count_rows(const int64_t* target, int64_t rows, int64_t ignore_index, int64_t* counted,
                  Stream stream);

// Enqueues loss[0] = sum of row_loss, divided by counted[0] (0 when that is 0) unless counted is
// nullptr. Always adds in the same order.
Status reduce_loss(const float* row_loss, int64_t rows, const int64_t* counted, float* loss,
                   Stream stream);

}  // namespace tigon
