// SPDX-License-Identifier: Apache-2.0
// Ops for tigon.h out of typed launchers: make_op<Args>() gives a tigon_op whose run() fills an
// Args from the tensors and options of a call and passes it on. Whatever has launchers over a
// signature becomes an op in this way: the kernels, the baselines, somebody's file.
#pragma once
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>

#include "kernels/call/pass_info.h"
#include "kernels/call/status.h"
#include "kernels/call/tigon.h"

namespace tigon::call {

// What tigon_op::state points to, with the launchers behind it.
struct OpState {
  const PassInfo& info;
  const char* formula;
};
template <class Launchers>
struct LauncherState : OpState {
  Launchers launchers;
};

// The view of a tensor; false where rank or dtype is another.
template <class T, int N>
bool fill_view(const tigon_tensor& tensor, View<T, N>* view) {
  if (tensor.sizes == nullptr) return tensor.data == nullptr;  // left out
  if (tensor.rank != N || tensor.dtype != static_cast<int32_t>(dtype_of<T>)) return false;
  view->data = static_cast<T*>(tensor.data);
  int64_t packed = 1;
  for (int i = N - 1; i >= 0; --i) {
    view->shape[i] = tensor.sizes[i];
    view->stride[i] = tensor.strides != nullptr ? tensor.strides[i] : packed;
    packed *= tensor.sizes[i];
  }
  return true;
}

// False where its type does not hold the value.
template <class Args, class Value>
bool fill_option(const Option<Args, Value>& option, double given, Value* value) {
  if constexpr (std::is_enum_v<Value>) {
    if (!(given >= 0 && given < static_cast<double>(option.choices.size()))) return false;
    *value = static_cast<Value>(static_cast<int>(given));
    return static_cast<double>(static_cast<int>(given)) == given;
  } else if constexpr (std::is_integral_v<Value>) {
    constexpr double kEnd = static_cast<double>(uint64_t{1} << (8 * sizeof(Value) - 1));
    if (!(given >= -kEnd && given < kEnd)) return false;
    *value = static_cast<Value>(given);
    return static_cast<double>(*value) == given;
  } else {
    *value = static_cast<Value>(given);
    return true;
  }
}

template <Signature Args>
bool fill_tensors(const tigon_call& call, Args* args) {
  bool right = true;
  int32_t at = 0;
  for_each_field<Args>([&](const auto& field) {
    if (at < call.tensor_count)
      right = fill_view(call.tensors[at], &(args->*(field.member))) && right;
    const bool given = at < call.tensor_count && call.tensors[at].sizes != nullptr;
    right = right && (given || field.is_optional);
    ++at;
  });
  return right && call.tensor_count <= at;
}

// One walk over the signature takes all options that are given in its order, which is the usual
// one; where the order is another, further walks take the others.
template <Signature Args>
bool fill_options(const tigon_call& call, Args* args) {
  bool right = true;
  int32_t at = 0, before = -1;
  while (at < call.option_count && at != before) {
    before = at;
    int32_t index = 0;
    for_each_option<Args>([&](const auto& option) {
      for (; at < call.option_count && call.options[at].index == index; ++at)
        right = fill_option(option, call.options[at].value, &(args->*(option.member))) && right;
      ++index;
    });
  }
  return right && at == call.option_count;
}

// Fills the arguments of a call as far as they can hold it. False where they cannot; explain() says
// why.
template <Signature Args>
bool fill_args(const tigon_call& call, Args* args) {
  if (call.tensor_count < 0 || call.option_count < 0) return false;
  if constexpr (requires { args->scratch; }) args->scratch = {call.scratch, call.scratch_bytes};
  return fill_tensors(call, args) && fill_options(call, args);
}

// Launchers of a pass: run(args, scratch, stream) and, where there is something to do,
// workspace_bytes(args) and prepare(args). These are those that the namespace of Args declares:
// forward, backward, forward_backward, statistics or join, workspace and tune.
struct OwnLaunchers {
  template <class Args>
  Status run(const Args& args, const Scratch&, Stream stream) const {
    if constexpr (requires { forward(args, stream); })
      return forward(args, stream);
    else if constexpr (requires { backward(args, stream); })
      return backward(args, stream);
    else if constexpr (requires { forward_backward(args, stream); })
      return forward_backward(args, stream);
    else if constexpr (requires { statistics(args, stream); })
      return statistics(args, stream);
    else
      return join(args, stream);
  }
  template <class Args>
  requires requires(const Args& args) { workspace(args); }
  size_t workspace_bytes(const Args& args) const { return workspace(args); }
  template <class Args>
  requires requires(const Args& args) { tune(args); }
  Status prepare(const Args& args) const { return tune(args); }
};

// Calls f(args) with the arguments of a call; nothing is thrown out of it.
template <Signature Args, class F>
tigon_status with_args(const tigon_op* op, const tigon_call* call, const F& f) noexcept {
  try {
    Args args;
    if (!fill_args(*call, &args)) return refused(op, *call, "");
    return answer(op, *call, f(args));
  } catch (const std::bad_alloc&) {
    return failed(op, TIGON_OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::exception& error) {
    return failed(op, TIGON_LAUNCH_FAILED, error.what());
  }
}

template <class Launchers>
const Launchers& launchers_of(const tigon_op* op) {
  const auto* state = static_cast<const OpState*>(op->state);
  return static_cast<const LauncherState<Launchers>*>(state)->launchers;
}

// `state` must outlive the op.
template <Signature Args, class Launchers>
tigon_op make_op(const char* implementation, const LauncherState<Launchers>* state) {
  tigon_op op = {};
  op.abi = TIGON_ABI;
  op.dtype = static_cast<int32_t>(dtype_of<typename Args::Elem>);
  op.device = kDevice;
  op.name = Args::kName;
  op.implementation = implementation;
  if constexpr (requires(Args args) { state->launchers.workspace_bytes(args); })
    op.workspace = [](const tigon_op* self, const tigon_call* call) noexcept {
      size_t bytes = 0;
      with_args<Args>(self, call, [&](const Args& args) {
        bytes = launchers_of<Launchers>(self).workspace_bytes(args);
        return Status{};
      });
      return bytes;
    };
  if constexpr (requires(Args args) { state->launchers.prepare(args); })
    op.prepare = [](const tigon_op* self, const tigon_call* call) noexcept {
      return with_args<Args>(self, call, [self](const Args& args) {
        return launchers_of<Launchers>(self).prepare(args);
      });
    };
  op.run = [](const tigon_op* self, const tigon_call* call, void* stream) noexcept {
    return with_args<Args>(self, call, [=](const Args& args) {
      return launchers_of<Launchers>(self).run(args, Scratch{call->scratch, call->scratch_bytes},
                                               static_cast<Stream>(stream));
    });
  };
  op.describe = [](const tigon_op* self) noexcept { return description(self); };
  op.state = static_cast<const OpState*>(state);
  return op;
}

}  // namespace tigon::call
