// The launchers of one op as kernels of a plug-in, whoever defines them. `tigon try` generates the
// tigon_plugin_get() that names them and links it with somebody's file.
#pragma once
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/plugin/tigon_plugin.h"
#include "harness/try/cuda_runtime_host.h"
#include "harness/try/watched_memory.h"
#include "kernels/signature/signature.h"

extern "C" const char tigon_try_name[];  // of the file

namespace tigon::tried {

// The launcher of one signature and what may belong to it; null where the file does not define it.
template <class Args>
struct Launcher {
  inline static Run<Args> run = nullptr;
  inline static Workspace<Args> workspace = nullptr;
  inline static Tune<Args> tune = nullptr;
};

template <class Args>
Args arguments(const tigon_call& call) {
  Args args;
  for_each_field<Args>([&](const auto& field) {
    auto& view = args.*(field.member);
    const tigon_tensor* t = tigon_find(&call, field.name);
    if (t == nullptr) return;
    using View = std::remove_reference_t<decltype(view)>;
    view.data = static_cast<decltype(view.data)>(t->data);
    for (int i = 0; i < View::kRank; ++i) {
      view.shape[i] = t->shape[i];
      view.stride[i] = t->stride[i];
    }
  });
  for_each_option<Args>([&](const auto& option) {
    auto& value = args.*(option.member);
    using Value = std::remove_reference_t<decltype(value)>;
    const double number = tigon_number(&call, option.name, static_cast<double>(value));
    if constexpr (std::is_enum_v<Value>)
      value = static_cast<Value>(static_cast<int>(number));
    else
      value = static_cast<Value>(number);
  });
  if constexpr (requires { args.scratch; }) args.scratch = {call.workspace, call.workspace_bytes};
  return args;
}

inline int32_t code_of(const Status& status, const char** message) {
  *message = status.reason;
  switch (status.code) {
    case Status::kOk:
      return TIGON_OK;
    case Status::kInvalidArgument:
      return TIGON_INVALID;
    case Status::kUnsupported:
      return TIGON_UNSUPPORTED;
    case Status::kLaunchFailed:
    case Status::kOutOfMemory:
      return TIGON_FAILED;
  }
  return TIGON_FAILED;
}

// One pass: its launchers for all policies as one kernel of the plug-in.
template <template <class> class Args>
struct PassKernel {
  inline static std::vector<int32_t> dtypes;

  template <class F>
  static void with_policy(int32_t dtype, const F& f) {
    if (dtype == TIGON_F32) f.template operator()<Args<F32>>();
    if (dtype == TIGON_BF16) f.template operator()<Args<BF16>>();
    if (dtype == TIGON_F16) f.template operator()<Args<F16>>();
  }

  static size_t workspace(const tigon_call* call) {
    size_t bytes = 0;
    with_policy(call->dtype, [&]<class A> {
      if (Launcher<A>::workspace != nullptr) bytes = Launcher<A>::workspace(arguments<A>(*call));
    });
    return bytes;
  }

  static int32_t prepare(const tigon_call* call, const char** message) {
    Status status;
    with_policy(call->dtype, [&]<class A> {
      if (Launcher<A>::tune != nullptr) status = Launcher<A>::tune(arguments<A>(*call));
    });
    return code_of(status, message);
  }

  static int32_t run(const tigon_call* call, const char** message) {
    WatchedMemory memory{*call};
    Status status = unsupported("the file has no launcher for this dtype");
    begin_launches();
    with_policy(call->dtype, [&]<class A> {
      if (Launcher<A>::run == nullptr) return;
      status = Launcher<A>::run(arguments<A>(memory.call), static_cast<Stream>(call->stream));
    });
    memory.give_back();
    return code_of(end_launches(status), message);
  }

  // Adds the kernel to a library, if the file defines a launcher of it.
  static void add(const char* op, const char* pass, std::vector<tigon_kernel>* kernels) {
    for (const int32_t dtype : {TIGON_F32, TIGON_BF16, TIGON_F16})
      with_policy(dtype, [&]<class A> {
        if (Launcher<A>::run != nullptr) dtypes.push_back(dtype);
      });
    if (dtypes.empty()) return;
    kernels->push_back({sizeof(tigon_kernel), op, pass, tigon_try_name,
                        TIGON_GPU ? TIGON_DEVICE_CUDA : TIGON_DEVICE_HOST,
                        static_cast<int32_t>(dtypes.size()), dtypes.data(), workspace, prepare,
                        run});
  }
};

class Library {
 public:
  template <template <class> class Args>
  void add(const char* op, const char* pass) {
    PassKernel<Args>::add(op, pass, &kernels_);
  }

  bool empty() const { return kernels_.empty(); }

  const tigon_plugin* get(uint32_t abi) {
    pointers_.clear();
    for (const tigon_kernel& k : kernels_) pointers_.push_back(&k);
    plugin_ = {sizeof(tigon_plugin),
               TIGON_PLUGIN_ABI,
               static_cast<int32_t>(pointers_.size()),
               tigon_try_name,
               "",
               pointers_.data()};
    return abi == TIGON_PLUGIN_ABI ? &plugin_ : nullptr;
  }

 private:
  std::vector<tigon_kernel> kernels_;
  std::vector<const tigon_kernel*> pointers_;
  tigon_plugin plugin_ = {};
};

}  // namespace tigon::tried
