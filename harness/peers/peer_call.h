// SPDX-License-Identifier: Apache-2.0
// One case as a peer gets it: a call in shared memory and the description of its op.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "harness/measure/call_set.h"
#include "harness/peers/accuracy.h"
#include "harness/record/record_writer.h"
#include "harness/run/judging/oracle.h"
#include "harness/worker/shared_call.h"

namespace tigon::peers {

// The tensors and options of the case's pass and, of a backward, the inputs and options of its
// forward, which a peer runs for autograd.
class PeerCall {
 public:
  // Its tensors take the shared memory from `begin`, a multiple of 256, to end().
  explicit PeerCall(const Case& c, size_t begin = 0);

  size_t end() const { return end_; }
  // Bytes of the outputs that an implementation makes itself; those it changes in place are inputs.
  size_t made_bytes() const;
  // The request {"do": what, "op": description, "call": the call}.
  Json request(const char* what) const;

  // Writes the inputs to `memory` [end()]: those that ours are timed with, or of the problem, which
  // is of the same case. Throws DeviceOutOfMemory.
  void put_timed_inputs(char* memory) const;
  void put_inputs(const Problem& problem, char* memory) const;
  // The outputs of these names.
  Outputs outputs(const std::vector<std::string>& names, const char* memory) const;

 private:
  struct Tensor {
    const TensorInfo* info = nullptr;
    const Pass* pass = nullptr;  // whose inputs it comes from
    bool is_given = true;        // not left out
    worker::SharedTensor place = {};
    size_t bytes = 0;
  };

  void add(const Case& c, const Pass& pass);
  void add_options(const Case& c, const Pass& pass);
  bool has(const std::string& name) const;
  bool is_saved(const TensorInfo& t) const;
  const char* role_of(const Tensor& t) const;
  void put(const CallSet& set, const Pass& pass, char* memory) const;
  void put(const Problem& problem, const Pass& pass, char* memory) const;

  Case case_, before_case_;
  const OpSpec* op_;
  const Pass *pass_, *before_;  // the pass whose function a peer runs first, or null
  size_t end_;
  std::vector<Tensor> tensors_;
  Json options_ = Json::array();
  std::vector<tigon_option> changed_;  // options that differ from their defaults
};

}  // namespace tigon::peers
