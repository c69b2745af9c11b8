// SPDX-License-Identifier: Apache-2.0
// A norm as cuDNN's graph API computes it: a graph of one operation, compiled once per process for
// its sizes and types.
#pragma once
#include <compare>
#include <cstdint>
#include <unordered_map>

#include "kernels/signature/signature.h"

namespace tigon::cudnn {

struct Norm {
  enum Kind { kRms, kLayer };
  Kind kind = kRms;
  bool backward = false;
  DType type = DType::kF32;         // of x, y, dy and dx
  DType weight_type = DType::kF32;  // of w, b, dw and db: engines take one for all
  int64_t rows = 0, columns = 0;
  bool has_weight = false;  // backward: and dw, and for kLayer db
  bool has_bias = false;    // forward of kLayer
  auto operator<=>(const Norm&) const = default;
};

// The tensors of a call: [rows, columns]; [columns]; fp32 [rows]; one float on the host.
enum NormTensor : int64_t { kX = 1, kY, kDy, kDx, kW, kB, kDw, kDb, kMean, kRstd, kEps };

// Where the tensors of a call are, by NormTensor. Without gaps, at multiples of 16 bytes.
using Pointers = std::unordered_map<int64_t, void*>;

// Bytes that the engine needs beside its tensors; 0 where cuDNN has none. Compiles it.
size_t workspace(const Norm& norm);

// Enqueues the norm; kUnsupported with cuDNN's words where it has no engine. Only compiled before,
// it can be captured into a graph.
Status run(const Norm& norm, Pointers tensors, const Scratch& scratch, Stream stream);

}  // namespace tigon::cudnn
