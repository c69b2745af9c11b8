// SPDX-License-Identifier: Apache-2.0
// The catalogue of faults.
#include "harness/mutants/catalogue.h"

#include <algorithm>

#include "harness/mutants/mutant.h"

namespace tigon {

const std::vector<CatalogueEntry>& fault_catalogue() {
  static const std::vector<CatalogueEntry> entries = {
      {1, "mask of the tail missing", ""},
      {2, "eps outside the square root", ""},
      {3, "eps omitted", ""},
      {4, "1/n missing", ""},
      {5, "projection term of dx missing", ""},
      {6, "sum for mean in dx", ""},
      {7, "a partial sum of dw lost", ""},
      {8, "dw summed in bf16", ""},
      {9, "sum of squares in bf16", ""},
      {10, "weight ignored in dx", ""},
      {11, "store truncates", ""},
      {12, "variance over n - 1", ""},
      {13, "variance in one pass", ""},
      {14, "mean(dy) missing in layer norm", ""},
      {15, "ignored rows counted in the mean", ""},
      {16, "smoothing without the sum of logits", ""},
      {17, "smoothing missing in the gradient", ""},
      {18, "online sum not rescaled", ""},
      {19, "maximum not subtracted", ""},
      {20, "target off by one", ""},
      {21, "upstream gradient ignored", ""},
      {22, "upstream gradient of the first row", ""},
      {23, "slope of the softcap missing", ""},
      {24, "gradient of the z-loss missing", ""},
      {25, "gradient of the true class through a low-precision buffer", ""},
      {26, "gradients beside the target are zero", ""},
      {27, "in-place read after write", ""},
      {28, "last block of the vocabulary dropped", ""},
      {29, "class weights: divided by N instead of their sum", ""},
      {30, "derivative term of the gate missing", ""},
      {31, "gate computed in bf16", ""},
      {32, "gate and up swapped", ""},
      {33, "erf for tanh, cubic constant 0.044", ""},
      {34, "rope: sign of sin, pairing, sign of backward, stride of the angles 0", ""},
      {35, "last partial chunk skipped", ""},
      {36, "sum over chunks in bf16", ""},
      {37, "JSD: beta swapped, temperature^2 missing, ignore_index unused", ""},
      {38, "DPO: sign of the reference term, average for sum, beta missing", "no op is a DPO loss"},
      {39, "int32 row offset", ""},
      {40, "barrier missing, warp mask wrong", ""},
      {41, "workspace not initialised, output added instead of set", ""},
      {42, "writes one element past the row", ""},
      {43, "stride taken as n", ""},
      {44, "kernel that does nothing", ""},
      {45, "wrong stream, returns before the work is done", "plug-in kernels: group cheat"},
      {46, "16-byte load on an unaligned address", ""},
      {47, "NaN swallowed", ""},
      {48, "static state between calls", ""},
  };
  return entries;
}

std::vector<int> unexplained_catalogue_numbers() {
  std::vector<int> missing;
  for (const CatalogueEntry& entry : fault_catalogue()) {
    const bool planted = std::any_of(all_mutants().begin(), all_mutants().end(),
                                     [&](const Mutant& m) { return m.catalogue == entry.number; });
    if (!planted && entry.elsewhere[0] == '\0') missing.push_back(entry.number);
  }
  return missing;
}

}  // namespace tigon
