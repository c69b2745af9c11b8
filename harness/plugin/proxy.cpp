// SPDX-License-Identifier: Apache-2.0
// A plug-in kernel as an implementation.
#include "harness/plugin/proxy.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "harness/plugin/process_watch.h"
#include "kernels/call/typed.h"
#include "kernels/device/runtime.h"

namespace tigon::plugin {

namespace {

constexpr const char* kNotThisDType = "the library has no op of this dtype";

// Long enough for a thread that waits for the call to return; 60 cases cost half a second.
constexpr timespec kPause = {0, 2'000'000};
constexpr double kMostIdleSeconds = 5e-4;  // of processor time in the pause
// On a busy machine what ends a call, as giving memory back, may come late, but not again and
// again: with one long pause, functions of numpy arrays failed so in four tests of `tigon try` that
// ran on two cores beside others.
constexpr timespec kLongPause = {0, 20'000'000};
constexpr int kLongPauses = 5;

// Whether the process used a processor during a pause, or wants one at its end: on a busy machine
// it may get none for longer than that.
bool is_busy_during(const timespec& pause, pid_t pid) {
  const double before = processor_seconds(pid);
  nanosleep(&pause, nullptr);
  return processor_seconds(pid) - before >= kMostIdleSeconds || is_runnable(pid);
}

// Pauses; whether the process keeps the processor busy.
bool is_busy(pid_t pid) {
  if (!is_busy_during(kPause, pid)) return false;
  for (int i = 0; i < kLongPauses; ++i)
    if (!is_busy_during(kLongPause, pid)) return false;
  return true;
}

bool is_input(Role role) { return role == Role::kIn || role == Role::kInOut; }

Image rotated(const RemoteCall& call, const Image& image, std::mt19937_64* random) {
  Image decoy = image;
  for (const auto& t : call.tensors()) {
    if (!is_input(t.role) || t.elements() < 2) continue;
    std::vector<char> packed = t.gather(image.data());
    const size_t by = 1 + (*random)() % (t.elements() - 1);
    std::rotate(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(by * size_of(t.ref.dtype)),
                packed.end());
    t.scatter(packed, &decoy);
  }
  return decoy;
}

// One element of the largest input takes the value of another.
Image one_changed(const RemoteCall& call, const Image& image, std::mt19937_64* random) {
  const RemoteCall::Place* largest = nullptr;
  for (const auto& t : call.tensors())
    if (is_input(t.role) && t.elements() > 1 && (!largest || t.elements() > largest->elements()))
      largest = &t;
  Image decoy = image;
  if (largest == nullptr) return decoy;
  std::vector<char> packed = largest->gather(image.data());
  const size_t size = size_of(largest->ref.dtype), n = largest->elements();
  const size_t to = (*random)() % n, from = (to + 1 + (*random)() % (n - 1)) % n;
  std::memcpy(packed.data() + to * size, packed.data() + from * size, size);
  largest->scatter(packed, &decoy);
  return decoy;
}

std::string one_line(std::string text) {
  constexpr size_t kMostBytes = 300;
  if (text.size() > kMostBytes) text.resize(kMostBytes);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

// A message begins with the op where it follows tigon.h; a record says which op it is about.
std::string without_name(const std::string& message, const KernelOf& kernel) {
  const std::string name = name_of(*kernel.op, *kernel.pass) + ": ";
  return message.starts_with(name) ? message.substr(name.size()) : message;
}

// A library that writes to the judge's connection may send anything in place of an answer.
void require_fields(const Json& reply, std::initializer_list<const char*> fields) {
  for (const char* field : fields)
    if (!reply.contains(field))
      throw ImplementationFault(Verdict::kCrashed, "the library wrote into the judge's connection");
}

}  // namespace

size_t Proxy::workspace(DType policy, const Bound& bound) {
  if (!kernel_.ops.contains(policy)) return 0;
  const RemoteCall call(kernel_, policy, bound);
  process_->memory(call.bytes());
  const Json reply = process_->ask(call.request("workspace"));
  require_fields(reply, {"bytes"});
  return reply.at("bytes").get<size_t>();
}

Status Proxy::prepare(DType policy, const Bound& bound) {
  if (!kernel_.ops.contains(policy)) return unsupported(kNotThisDType);
  const RemoteCall call(kernel_, policy, bound);
  process_->memory(call.bytes());
  return status_of(process_->ask(call.request("prepare")));
}

Status Proxy::run(DType policy, const Bound& bound) {
  if (!kernel_.ops.contains(policy)) return unsupported(kNotThisDType);
  const RemoteCall call(kernel_, policy, bound);
  const Image image = call.upload();
  call_with_decoys(call, image);
  char* shared = process_->memory(call.bytes());
  std::copy(image.begin(), image.end(), shared);
  const int threads_before = thread_count(process_->pid());
  const Json reply = process_->ask(call.request("run"));
  const Image at_return(shared, shared + image.size());
  require_settled(call, call.fingerprints(at_return.data()), threads_before);
  call.download(at_return);
  return status_of(reply);
}

void Proxy::call_with_decoys(const RemoteCall& call, const Image& image) {
  for (const auto make : {rotated, one_changed}) {
    const Image decoy = make(call, image, &random_);
    std::copy(decoy.begin(), decoy.end(), process_->memory(call.bytes()));
    process_->ask(call.request("run"));
  }
}

void Proxy::require_settled(const RemoteCall& call, const RemoteCall::Fingerprints& at_return,
                            int threads_before) {
  const pid_t pid = process_->pid();
  const bool busy = is_busy(pid);
  const int threads = thread_count(pid) - threads_before;
  process_->ask(call.request("settle"));
  const auto fault = [](const std::string& what) {
    throw ImplementationFault(Verdict::kRuntimeError, "result after return: " + what);
  };
  for (const auto& [name, fingerprint] : call.fingerprints(process_->memory(call.bytes())))
    if (fingerprint != at_return.at(name)) fault(name + " changed after the call had returned");
  if (threads > 0) fault(fmt::format("the call left {} threads running", threads));
  if (busy) fault("the library keeps the processor busy between calls");
  if (const auto left = process_->strays(); !left.empty())
    fault(fmt::format("the call left {} processes running", left.size()));
}

Status Proxy::status_of(const Json& reply) {
  require_fields(reply, {"code", "message"});
  tigon_status status = {reply.at("code"), ""};
  message_ = one_line(without_name(reply.at("message"), kernel_));
  if (status.code < TIGON_OK || status.code > TIGON_OUT_OF_MEMORY) {
    message_ = fmt::format("returned the code {}, which tigon.h does not have ({})", status.code,
                           message_);
    status.code = TIGON_LAUNCH_FAILED;
  }
  status.message = message_.c_str();
  return tigon::status_of(status);
}

}  // namespace tigon::plugin
