// SPDX-License-Identifier: Apache-2.0
// Tigon's ops for C++: a signature's struct instead of a tigon_call.
//
//   tigon::rms_norm::Forward<tigon::BF16> args;
//   args.x = tigon::view(x, tokens, hidden);      // and so on; all that is left out is optional
//   tigon::Status status = tigon::run(args, stream);
//
// The structs and what each member means are in kernels/<op>/<op>.h. Link tigon::tigon or
// tigon::tigon-host.
#pragma once
#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels/call/tigon.h"
#include "kernels/signature/signature.h"

namespace tigon {

// A call of tigon.h that refers to these arguments; they must outlive it.
template <Signature Args>
class Call {
 public:
  explicit Call(const Args& args) {
    int32_t tensors = 0, options = 0;
    for_each_field<Args>([&](const auto& field) {
      auto& view = args.*(field.member);
      using View = std::remove_cvref_t<decltype(view)>;
      constexpr auto kDType = static_cast<int32_t>(dtype_of<typename View::Elem>);
      auto* data = const_cast<std::remove_const_t<typename View::Elem>*>(view.data);
      const bool given = !field.is_optional || view.data != nullptr;
      tensors_[tensors++] = {data, given ? view.shape : nullptr, view.stride, kDType, View::kRank};
    });
    for_each_option<Args>([&](const auto& option) {
      options_[options] = {options, 0, static_cast<double>(args.*(option.member))};
      ++options;
    });
    call_ = {tensors_.data(), options_.data(), nullptr, 0, tensors, options};
    if constexpr (requires { args.scratch; }) {
      call_.scratch = args.scratch.data;
      call_.scratch_bytes = args.scratch.bytes;
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  const tigon_call* get() const { return &call_; }

 private:
  static constexpr size_t kMost = field_count<Args>();
  std::array<tigon_tensor, kMost> tensors_;
  std::array<tigon_option, kMost> options_;
  tigon_call call_;
};

// The library's op of a signature.
template <Signature Args>
const tigon_op* op_of() {
  static const tigon_op* const op =
      tigon_find(Args::kName, static_cast<int32_t>(dtype_of<typename Args::Elem>));
  return op;
}

constexpr bool is_code(Status::Code code, int32_t of_call) {
  return static_cast<int32_t>(code) == of_call;
}
static_assert(is_code(Status::kOk, TIGON_OK) && is_code(Status::kInvalidArgument, TIGON_INVALID) &&
              is_code(Status::kUnsupported, TIGON_UNSUPPORTED) &&
              is_code(Status::kLaunchFailed, TIGON_LAUNCH_FAILED) &&
              is_code(Status::kOutOfMemory, TIGON_OUT_OF_MEMORY));
inline Status status_of(const tigon_status& status) {
  return {static_cast<Status::Code>(status.code), status.message};
}

// Enqueues an op on `stream`; see tigon_run(). The reason of a Status lives until the thread's next
// call. To the errors in the op's header this adds kOutOfMemory: the host has no memory left.
template <Signature Args>
Status run(const tigon_op* op, const Args& args, Stream stream) {
  return status_of(tigon_run(op, Call(args).get(), stream));
}
template <Signature Args>
Status run(const Args& args, Stream stream) {
  return run(op_of<Args>(), args, stream);
}

// Bytes of scratch that run() needs; see tigon_workspace().
template <Signature Args>
size_t workspace_bytes(const tigon_op* op, const Args& args) {
  return tigon_workspace(op, Call(args).get());
}
template <Signature Args>
size_t workspace_bytes(const Args& args) {
  return workspace_bytes(op_of<Args>(), args);
}

// Chooses among algorithms once per shape; see tigon_prepare().
template <Signature Args>
Status prepare(const tigon_op* op, const Args& args) {
  return status_of(tigon_prepare(op, Call(args).get()));
}
template <Signature Args>
Status prepare(const Args& args) {
  return prepare(op_of<Args>(), args);
}

}  // namespace tigon
