// SPDX-License-Identifier: Apache-2.0
// Timed calls of a plug-in kernel.
#include "harness/plugin/timed_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/plugin/process_watch.h"
#include "harness/plugin/use_plugin.h"
#include "harness/run/check.h"

namespace tigon::plugin {

namespace {

constexpr unsigned char kPoison = 0xff;

// The case of one of our implementations: what another pass saves must not come from the library.
Case ours(Case c) {
  for (const Implementation& i : find_pass(*find_op(c.op), c.pass)->implementations)
    if (!is_plugin(i.name)) {
      c.impl = i.name;
      break;
    }
  return c;
}

std::shared_ptr<PluginProcess> fresh_process(const std::string& library) {
  auto process = std::make_shared<PluginProcess>(library);
  process->set_wants_overhead(true);
  process->description();
  return process;
}

void require(const Status& status, const char* what) {
  if (!status.ok())
    throw ImplementationFault(
        status.code == Status::kUnsupported ? Verdict::kUnsupported : Verdict::kRuntimeError,
        fmt::format("{}: {}", what, status.reason));
}

// Of the elements of the tensors that the call reads, or of the others.
uint64_t fingerprint_of(const RemoteCall& call, bool inputs, const char* memory) {
  uint64_t all = 0;
  for (const RemoteCall::Place& p : call.tensors())
    if ((p.role == Role::kIn) == inputs) all = all * 0x9e3779b97f4a7c15u + p.fingerprint(memory);
  return all;
}

}  // namespace

TimedKernel::TimedKernel(const std::string& library, const KernelOf& kernel, const Case& c)
    : process_(fresh_process(library)),
      proxy_(process_, kernel),
      set_(ours(c)),
      scratch_(proxy_.workspace(c.dtype, set_.bound())),
      bound_(set_.with_scratch(scratch_)),
      call_(kernel, c.dtype, bound_) {
  require(proxy_.prepare(c.dtype, bound_), "prepare");
}

// What is shared is looked at where it lies: a call may have gigabytes.
TimedKernel::Sample TimedKernel::call(uint64_t seed, bool keeps_tensors) {
  set_.fill_inputs(seed);
  set_.poison_outputs();
  if (scratch_.bytes() > 0) device_fill(scratch_.data(), kPoison, scratch_.bytes());
  device_synchronize();
  char* shared = process_->memory(call_.bytes());
  call_.upload_to(shared);
  const uint64_t given = fingerprint_of(call_, true, shared);
  process_->ask(call_.request("put"));
  const int threads = thread_count(process_->pid());
  Sample sample;
  if (keeps_tensors) sample.inputs = call_.inputs(shared);
  const Json reply = process_->ask_timed(call_.request("timed"), &sample.seconds);
  if (on_gpu()) process_->ask(call_.request("get"));
  const RemoteCall::Fingerprints at_return = call_.fingerprints(shared);
  const uint64_t left = fingerprint_of(call_, true, shared);
  require(proxy_.status_of(reply), "run");
  sample.seconds -= process_->overhead();
  sample.fingerprint = fingerprint_of(call_, false, shared);
  if (keeps_tensors) sample.outputs = call_.outputs(shared);
  proxy_.require_settled(call_, at_return, threads);
  if (left != given) throw ImplementationFault(Verdict::kInputModified, "changed an input");
  return sample;
}

}  // namespace tigon::plugin
