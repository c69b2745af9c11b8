// Timed calls of a plug-in kernel.
#include "harness/plugin/timed_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/measure/device_data.h"
#include "harness/plugin/process_watch.h"
#include "harness/plugin/use_plugin.h"
#include "harness/run/check.h"

namespace tigon::plugin {

namespace {

constexpr unsigned char kPoison = 0xff;

bool on_gpu() { return default_executor() == "cuda"; }

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

uint64_t fingerprint_of(const RemoteCall::Packed& outputs) {
  uint64_t all = 0;
  for (const auto& [name, bytes] : outputs)
    all = all * 0x9e3779b97f4a7c15u + stable_hash({bytes.data(), bytes.size()});
  return all;
}

}  // namespace

TimedKernel::TimedKernel(const std::string& library, const KernelOf& kernel, const Case& c)
    : process_(fresh_process(library)),
      proxy_(process_, kernel),
      set_(ours(c)),
      scratch_(proxy_.workspace(c.dtype, set_.bound())),
      flush_(on_gpu() ? 2 * device_info().l2_bytes : 0),
      bound_(set_.with_scratch(scratch_)),
      call_(kernel, c.dtype, bound_) {
  require(proxy_.prepare(c.dtype, bound_), "prepare");
}

TimedKernel::Sample TimedKernel::call(uint64_t seed) {
  set_.fill_inputs(seed);
  set_.poison_outputs();
  if (scratch_.bytes() > 0) device_fill(scratch_.data(), kPoison, scratch_.bytes());
  device_synchronize();
  const Image image = call_.upload();
  char* shared = process_->memory(call_.bytes());
  std::copy(image.begin(), image.end(), shared);
  process_->ask(call_.request("put"));
  if (flush_.bytes() > 0) {
    require(flush_caches(flush_.data(), flush_.bytes(), nullptr), "flush");
    device_synchronize();
  }
  const int threads = thread_count(process_->pid());
  Sample sample;
  const Json reply = process_->ask_timed(call_.request("timed"), &sample.seconds);
  if (on_gpu()) process_->ask(call_.request("get"));
  const Image at_return(shared, shared + image.size());
  require(proxy_.status_of(reply), "run");
  proxy_.require_settled(call_, at_return, threads);
  sample.seconds -= process_->overhead();
  sample.inputs = call_.inputs(at_return);
  if (sample.inputs != call_.inputs(image))
    throw ImplementationFault(Verdict::kInputModified, "changed an input");
  sample.outputs = call_.outputs(at_return);
  sample.fingerprint = fingerprint_of(sample.outputs);
  return sample;
}

}  // namespace tigon::plugin
