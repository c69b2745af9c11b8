// SPDX-License-Identifier: Apache-2.0
// A pass of an op as a torch operator: what of tigon_describe() decides its schema and its calls.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/python/csrc/library.h"

namespace tigon::torch_adapter {

using adapter::Library;

inline constexpr int kMostTensors = 32;  // of a pass
inline constexpr int kMostOptions = 32;
inline constexpr int kDTypes = TIGON_U8 + 1;

enum class Role { kIn, kOut, kInOut, kSaved };

struct TensorPlan {
  std::string name;
  Role role;
  std::vector<std::string> shape;
  bool is_optional;
  bool is_strided;
  std::array<int32_t, kDTypes> dtype;  // for activations of a dtype
  bool has_rows;                       // its first axis is that of the rows of the first tensor
  // Where a size is that of an axis of an argument; -1: tigon_shape() says.
  struct Source {
    int tensor = -1, axis = -1;
  };
  std::vector<Source> sources;
  std::vector<std::string> may_alias;  // the inputs in whose memory it may lie
};

struct OptionPlan {
  std::string name;
  bool is_float;
  std::string default_text;  // as a schema has it
};

// A result of the operator: memory that is made for tensor `tensor` of the call.
struct Result {
  int tensor;
  int copy_of = -1;     // the argument that it begins as: the pass changes it in place
  int wanted_bit = -1;  // the bit of `want` that asks for it; -1: always there
  int over = -1;        // the argument that it is written over; it is then not returned
};

struct Pass {
  std::string name;  // rms_norm_forward
  std::array<const tigon_op*, kDTypes> ops = {};
  std::vector<TensorPlan> tensors;
  std::vector<OptionPlan> options;
  std::vector<int> arguments;  // tensors that are arguments, in order
  std::vector<Result> results;
  bool has_want = false;

  // rms_norm_forward(Tensor x, Tensor? w=None, float eps=1e-06, ...) -> (Tensor y, Tensor rstd)
  std::string schema() const;

  // swiglu_backward_(Tensor dy, Tensor(a!) a, Tensor(b!) b, ...) -> (): results that may lie in the
  // memory of arguments are written over them. Nothing where there is no such result.
  std::optional<Pass> in_place() const;
};

// All passes of a library, one for all its dtypes, and their forms in place.
std::vector<Pass> passes_of(const Library& library);

}  // namespace tigon::torch_adapter
