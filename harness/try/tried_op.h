// SPDX-License-Identifier: Apache-2.0
// The launchers that somebody's file defines as ops of tigon.h. `tigon try` generates the
// tigon_find() that names them and links it with the file.
#pragma once
#include <vector>

#include "harness/try/cuda_runtime_host.h"
#include "harness/try/watched_memory.h"
#include "kernels/call/op_list.h"
#include "kernels/call/typed.h"

extern "C" const char tigon_try_name[];  // of the file

namespace tigon::tried {

// As make_op() takes them: around a launch, its memory and its launches are watched.
template <class Args>
struct WatchedLaunchers {
  Launchers<Args> defined;

  Status run(const Args& args, const Scratch&, Stream stream) const {
    const Call<Args> given(args);
    WatchedMemory memory(*given.get(), call::pass_info<Args>());
    Args watched = args;
    call::fill_args(memory.call, &watched);
    begin_launches();
    const Status status = defined.run(watched, stream);
    memory.give_back();
    return end_launches(status);
  }
  size_t workspace_bytes(const Args& args) const {
    return defined.workspace != nullptr ? defined.workspace(args) : 0;
  }
  Status prepare(const Args& args) const {
    return defined.tune != nullptr ? defined.tune(args) : Status{};
  }
};

// Adds the op of a signature, if the file defines its launcher.
template <class Args>
void add(const Launchers<Args>& defined, std::vector<tigon_op>* ops) {
  const volatile auto run = defined.run;  // else nvcc takes what is declared for defined
  if (run == nullptr) return;
  static const call::LauncherState<WatchedLaunchers<Args>> state{{call::pass_info<Args>(), ""},
                                                                 {defined}};
  ops->push_back(call::make_op<Args>(tigon_try_name, &state));
}

}  // namespace tigon::tried
