// SPDX-License-Identifier: Apache-2.0
// The buffers of a training step. All lie in one arena (model_memory.h).
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/signature/signature.h"

namespace tigon::convergence {

// What forward saves of a norm beside its output; mean of layer_norm only.
struct NormStatistics {
  float *rstd, *mean;
};

// Activations of a layer that backward reads. raw_qkv and head_rstd with qk_norm only.
template <class Elem>
struct LayerBuffers {
  NormStatistics norm1, norm2;
  float *lse, *head_rstd;
  Elem *normed1, *raw_qkv, *qkv, *attention, *middle, *normed2, *gate_up, *activated;
};

template <class Elem>
struct MedusaBuffers {
  Elem *before, *x, *dx, *dbefore;  // before the activation, the head's input, their gradients
  float* scale;                     // of each head's loss
  std::vector<int64_t*> target;     // of each head
};

template <class Elem>
struct ModelBuffers {
  Elem *weight, *gradient;
  float *master, *m, *v, *accumulated;
  int64_t *input, *target;
  int32_t *order, *first;
  float *cos, *sin;
  std::vector<Elem*> x;  // input of each layer, then of the final norm
  std::vector<LayerBuffers<Elem>> layers;
  MedusaBuffers<Elem> medusa;
  Elem *branch, *normed, *dnormed, *dx, *dbranch, *dactivated, *dqkv;
  NormStatistics final_norm;
  float *dnorm, *head_dnorm, *row_lse, *loss, *partial, *square;
  float* schedule;  // of AdamW: of most parameters, then of the tables
  Scratch norm_scratch, gemm_scratch, loss_scratch, attention_scratch, dattention_scratch;
};

}  // namespace tigon::convergence
