// SPDX-License-Identifier: Apache-2.0
// A plug-in kernel as an implementation of the harness: each call goes to the process of its
// library, with what exposes the usual cheats around it.
#pragma once
#include <memory>
#include <random>
#include <string>

#include "harness/plugin/process.h"
#include "harness/plugin/remote_call.h"

namespace tigon::plugin {

class Proxy {
 public:
  Proxy(std::shared_ptr<PluginProcess> process, KernelOf kernel)
      : process_(std::move(process)), kernel_(std::move(kernel)) {}

  size_t workspace(DType policy, const Bound& bound);
  Status prepare(DType policy, const Bound& bound);

  // Calls the kernel twice with other contents in the same memory (elements rotated; then all as in
  // the real call but for one element), then with the real ones. Takes the memory as it is the
  // moment the kernel returns; after a pause it must be the same, and neither threads nor processes
  // nor a busy processor may be left. Throws ImplementationFault.
  Status run(DType policy, const Bound& bound);

  // Pauses; then throws ImplementationFault unless the shared memory is as it was at return and no
  // thread beyond `threads_before`, no process and no busy processor is left.
  void require_settled(const RemoteCall& call, const RemoteCall::Fingerprints& at_return,
                       int threads_before);

  Status status_of(const Json& reply);

  const std::shared_ptr<PluginProcess>& process() const { return process_; }
  const KernelOf& kernel() const { return kernel_; }

 private:
  void call_with_decoys(const RemoteCall& call, const Image& image);

  std::shared_ptr<PluginProcess> process_;
  KernelOf kernel_;
  std::mt19937_64 random_{std::random_device{}()};
  std::string message_;  // of the last status
};

}  // namespace tigon::plugin
