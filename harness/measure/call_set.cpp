// SPDX-License-Identifier: Apache-2.0
// The tensors of one call in device memory.
#include "harness/measure/call_set.h"

#include <fmt/format.h>

#include "harness/judge/verdict.h"
#include "harness/measure/device_data.h"
#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/convert.h"

namespace tigon {
namespace {

constexpr unsigned char kPoison = 0xff;  // NaN in every float type

const OpSpec& op_of(const Case& c) {
  const OpSpec* op = find_op(c.op);
  if (op == nullptr) throw UsageError(fmt::format("no op '{}'", c.op));
  return *op;
}

const Pass& pass_of(const Case& c) {
  const Pass* pass = find_pass(op_of(c), c.pass);
  if (pass == nullptr) throw UsageError(fmt::format("{} has no pass '{}'", c.op, c.pass));
  return *pass;
}

int64_t elements_of(const TensorRef& ref) {
  int64_t n = 1;
  for (const int64_t size : ref.shape) n *= size;
  return n;
}

size_t bytes_of(const TensorRef& ref) {
  return static_cast<size_t>(elements_of(ref)) * size_of(ref.dtype);
}

void require(const Status& status, const std::string& what) {
  if (!status.ok()) throw DeviceError(what + ": " + status.reason);
}

}  // namespace

TensorBytes tensor_bytes(const Case& c) {
  const Pass& pass = pass_of(c);
  const Binding values = binding_of(c, op_of(c), pass);
  TensorBytes bytes;
  for (const TensorInfo& t : pass.tensors)
    if (!is_left_out(t, c.options))
      (t.is_output() ? bytes.outputs : bytes.inputs) += bytes_of(contiguous(t, c.dtype, values));
  return bytes;
}

CallSet::CallSet(const Case& c) : case_(c), op_(&op_of(c)), pass_(&pass_of(c)) {
  bound_.values = binding_of(c, *op_, *pass_);
  for (const TensorInfo& t : pass_->tensors) {
    if (is_left_out(t, c.options)) continue;
    TensorRef ref = contiguous(t, c.dtype, bound_.values);
    DeviceBuffer& buffer = buffers_[t.name] = DeviceBuffer(bytes_of(ref));
    ref.data = buffer.data();
    bound_.tensors[t.name] = std::move(ref);
  }
}

void CallSet::fill_inputs(uint64_t seed) {
  for (const TensorInfo& t : pass_->tensors)
    if (t.is_input() && has(t.name)) fill_input(t, seed);
  if (!pass_->inputs_from.empty()) take_saved_inputs(seed);
  device_synchronize();
}

void CallSet::fill_input(const TensorInfo& tensor, uint64_t seed) {
  const InputPlan plan = plan_of(op_->inputs.front(), tensor.name);
  const TensorRef& ref = bound_.tensors.at(tensor.name);
  if (elements_of(ref) == 0) return;
  const uint64_t key = stream_key(seed, tensor.name);
  QuickFill quick = quick_fill(plan, bound_.values);
  const bool is_of_loss = !tensor.gradient_of.empty() && ref.shape.size() == 1;
  if (is_of_loss)  // which ends a training step
    quick = {.kind = QuickFill::kNormal, .mean = 1, .scale = 0};
  if (quick.kind == QuickFill::kNormal && size_of(ref.dtype) <= 4)
    require(fill_normal(ref.data, ref.dtype, elements_of(ref), key, static_cast<float>(quick.mean),
                        static_cast<float>(quick.scale), nullptr),
            tensor.name);
  else if (quick.kind == QuickFill::kIndices)
    require(fill_targets(static_cast<int64_t*>(ref.data), elements_of(ref), quick.below,
                         static_cast<float>(quick.ignored), quick.ignore_index, key, nullptr),
            tensor.name);
  else
    fill_on_host(tensor, plan, seed);
}

void CallSet::fill_on_host(const TensorInfo& tensor, const InputPlan& plan, uint64_t seed) {
  const TensorRef& ref = bound_.tensors.at(tensor.name);
  std::vector<double> values;
  fill(plan, seed, ref.shape, bound_.values, &values);
  const std::vector<std::byte> packed = narrow(values, ref.dtype);
  device_upload(ref.data, packed.data(), packed.size());
}

// The other pass runs on the same inputs, by the implementation that this case names or, where
// there is none of that name or it refuses, by its first.
void CallSet::take_saved_inputs(uint64_t seed) {
  Case c = case_;
  c.pass = pass_->inputs_from;
  CallSet before(c);
  before.fill_inputs(seed);
  const auto run = [&](const Implementation& i) {
    const DeviceBuffer scratch(i.workspace ? i.workspace(c.dtype, before.bound_) : 0);
    return i.run(c.dtype, before.with_scratch(scratch), nullptr);
  };
  const Implementation* named = find_implementation(*before.pass_, c.impl);
  Status status = named != nullptr ? run(*named) : unsupported("");
  if (status.code == Status::kUnsupported) status = run(before.pass_->implementations.front());
  require(status, c.op + " " + c.pass);
  for (const TensorInfo& made : before.pass_->tensors) {
    if (made.role == Role::kIn || made.role == Role::kInOut || !has(made.name)) continue;
    const TensorRef &from = before.bound_.tensors.at(made.name), &to = bound_.tensors.at(made.name);
    for (const TensorInfo& wanted : pass_->tensors)
      if (wanted.name == made.name && wanted.is_input() && bytes_of(from) == bytes_of(to))
        device_copy(to.data, from.data, bytes_of(to));
  }
  device_synchronize();
}

void CallSet::overwrite(const std::string& tensor, int64_t first,
                        const std::vector<double>& values) {
  const TensorRef& ref = bound_.tensors.at(tensor);
  const std::vector<std::byte> packed = narrow(values, ref.dtype);
  device_upload(static_cast<char*>(ref.data) + static_cast<size_t>(first) * size_of(ref.dtype),
                packed.data(), packed.size());
}

void CallSet::poison_outputs() {
  for (const TensorInfo& t : pass_->tensors)
    if (t.is_output() && t.role != Role::kInOut && has(t.name))
      device_fill(buffers_.at(t.name).data(), kPoison, buffers_.at(t.name).bytes());
}

std::vector<uint64_t> CallSet::fingerprints() const {
  std::vector<uint64_t> all;
  for (const TensorInfo& t : pass_->tensors)
    if (t.is_output() && has(t.name))
      all.push_back(fingerprint(buffers_.at(t.name).data(), buffers_.at(t.name).bytes(), nullptr));
  return all;
}

Bound CallSet::with_scratch(const DeviceBuffer& scratch) const {
  Bound bound = bound_;
  bound.scratch = {scratch.data(), scratch.bytes()};
  return bound;
}

}  // namespace tigon
