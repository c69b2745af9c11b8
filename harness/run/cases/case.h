// SPDX-License-Identifier: Apache-2.0
// One case: what is run, on which shape, options and inputs. Its id is its own repro.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/spec/op_spec.h"

namespace tigon {

struct Case {
  std::string op, pass, impl;
  DType dtype = DType::kF32;
  std::map<std::string, int64_t> axes;  // every axis of the op
  OptionSet options;                    // those that differ from the default; "absent" for a tensor
  std::string inputs = "normal";        // name of an InputSet
  uint64_t seed = 42;
  int shift = 0;   // elements by which every tensor's address is off its 256-byte alignment
  int skew = 0;    // elements by which each tensor is off more than the one before it
  int gap = 0;     // elements between the rows of the tensors whose rows may be strided
  int launch = 0;  // of the other shapes that a launch table may choose the n-th, from 1
  std::string property = {};  // of the pass, checked instead of comparing with the oracle
};

// "op/pass/impl/dtype/T=7,H=127,casting=gemma,inputs=small_rows,seed=42": axes in the contract's
// order, then options, then inputs and seed; shift, skew, gap, launch and prop only where they are
// given.
std::string case_id(const Case& c);

// The case of an id (order of the keys is free; inputs, seed, shift, skew, gap, launch and prop may
// be left out). Throws UsageError, which names the part that is wrong and what would be right.
Case parse_case(std::string_view id);

// 64-bit hash of the id, the same on every machine and in every release.
uint64_t stable_hash(std::string_view text);
// stable_hash(case_id(c)) as 16 hex digits.
std::string case_key(const Case& c);

// Axes and options of the case as numbers (defaults filled in), as the expressions of its contract
// read them.
Binding binding_of(const Case& c, const OpSpec& op, const Pass& pass);

// The tensor with rows one after another, without memory.
TensorRef contiguous(const TensorInfo& tensor, DType policy, const Binding& values);

// Elements by which the tensor of the pass is off its alignment. Those that are left out count, so
// that which tensors are aligned alike does not depend on them; one of another pass is behind all.
int shift_of(const Case& c, const Pass& pass, const TensorInfo& tensor);

// False where options do not fit the sizes, e.g. more columns are turned than a head has: the
// signature then gives a negative size.
bool options_fit(const OpSpec& op, const Pass& pass, const Case& c);

const Pass* find_pass(const OpSpec& op, std::string_view name);
const Implementation* find_implementation(const Pass& pass, std::string_view name);

}  // namespace tigon
