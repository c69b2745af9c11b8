// SPDX-License-Identifier: Apache-2.0
// One pass in device memory on some rows of a huge case: tiled tensors, workspace and calls.
#pragma once
#include <string>
#include <vector>

#include "harness/run/cases/case.h"
#include "harness/run/memory/tiled_tensor.h"

namespace tigon {

class TiledLaunch {
 public:
  // The tensors of the case with this many rows. `pass` must outlive it. Throws DeviceOutOfMemory.
  TiledLaunch(const Case& c, const OpSpec& op, const Pass& pass, int64_t rows);

  std::vector<TiledTensor>& tensors() { return tensors_; }
  const std::vector<TiledTensor>& tensors() const { return tensors_; }
  // Null where the pass or the case has no such tensor.
  TiledTensor* find(const std::string& name);
  const TiledTensor* find(const std::string& name) const;

  void plan(const InputSet& set, uint64_t seed);
  // Writes the inputs as planned and poisons the outputs.
  void fill(unsigned char poison);
  // One call, with its wall time where `seconds` is given. Throws Stop.
  void run(const Implementation& implementation, double* seconds = nullptr);

 private:
  Case case_;
  Binding binding_;
  std::vector<TiledTensor> tensors_;
};

}  // namespace tigon
