// SPDX-License-Identifier: Apache-2.0
// Cases in device memory.
#include "harness/run/memory/device_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "harness/run/executor.h"
#include "harness/run/memory/convert.h"

namespace tigon {

namespace {

constexpr const char* kWorkspace = "the workspace";

int value_or(const std::map<std::string, int>& values, const std::string& name, int otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

void require_no_findings() {
  const auto findings = executor_findings();
  if (!findings.empty()) throw Stop{findings.front().verdict, findings.front().message};
}

void require(const Status& status) {
  if (status.ok()) return;
  require_no_findings();  // says more than the status
  const Verdict verdict =
      status.code == Status::kUnsupported ? Verdict::kUnsupported : Verdict::kRuntimeError;
  throw Refused{{verdict, status.reason}};
}

// The first element of an input that is no longer what was uploaded.
std::optional<std::string> difference(const CaseTensor& t, const std::vector<std::byte>& now) {
  const auto before = narrow(t.input, t.dtype);
  const auto found = std::mismatch(before.begin(), before.end(), now.begin()).first;
  if (found == before.end()) return std::nullopt;
  const size_t element = static_cast<size_t>(found - before.begin()) / size_of(t.dtype);
  return fmt::format("input {}[{}]", t.info->name, index_text(t.shape, element));
}

}  // namespace

std::string index_text(const std::vector<int64_t>& shape, size_t element) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0;) {
    const auto length = static_cast<size_t>(shape[d]);
    text = fmt::format("{}{}{}", element % length, text.empty() ? "" : ",", text);
    element /= length;
  }
  return text;
}

DeviceCase::DeviceCase(const Problem& problem, Layout layout)
    : problem_(&problem), layout_(std::move(layout)) {
  for (const CaseTensor& t : problem.tensors) {
    const std::string& name = t.info->name;
    if (layout_.memory_of.count(name)) continue;
    tensors_.emplace(
        name,
        ArenaTensor(name, t.dtype, t.shape,
                    value_or(layout_.gap, name, t.info->is_strided ? problem.c.gap : 0),
                    value_or(layout_.shift, name, shift_of(problem.c, *problem.pass, *t.info))));
  }
  for (const CaseTensor& t : problem.tensors) bound_.tensors[t.info->name] = memory(t).ref();
  bound_.values = problem.binding;
  const Implementation& impl = *problem.implementation;
  const size_t bytes = impl.workspace ? impl.workspace(problem.c.dtype, bound_) : 0;
  if (bytes > 0) {
    workspace_.emplace(kWorkspace, DType::kU8, std::vector<int64_t>{static_cast<int64_t>(bytes)}, 0,
                       0);
    bound_.scratch = {workspace_->ref().data, bytes};
  }
  if (impl.prepare) require(impl.prepare(problem.c.dtype, bound_));
}

ArenaTensor& DeviceCase::memory(const CaseTensor& t) {
  const auto shared = layout_.memory_of.find(t.info->name);
  return tensors_.at(shared == layout_.memory_of.end() ? t.info->name : shared->second);
}

bool DeviceCase::is_overwritten(const CaseTensor& t) const {
  return t.is_output || std::any_of(layout_.memory_of.begin(), layout_.memory_of.end(),
                                    [&](const auto& pair) { return pair.second == t.info->name; });
}

void DeviceCase::fill(int round) {
  for (auto& [name, tensor] : tensors_) tensor.set_round(round % 2);
  for (const CaseTensor& t : problem_->tensors)
    if (t.is_input)
      memory(t).upload(narrow(t.input, t.dtype));
    else if (!layout_.memory_of.count(t.info->name))
      memory(t).poison(kPoisons[round % 2]);
  if (workspace_) {
    workspace_->set_round(round % 2);
    workspace_->poison(kPoisons[round % 2]);
  }
  device_synchronize();  // the call may come on another stream
}

void DeviceCase::call(Stream stream) {
  require(problem_->implementation->run(problem_->c.dtype, bound_, stream));
}

OutputBytes DeviceCase::run(int round, double* seconds) {
  fill(round);
  executor_set_order(round);
  executor_reset();
  const auto start = std::chrono::steady_clock::now();
  call(nullptr);
  stream_synchronize(nullptr);
  if (seconds)
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  require_no_findings();
  return collect();
}

OutputBytes DeviceCase::collect() {
  OutputBytes outputs;
  std::optional<std::string> damage, modified;
  for (const CaseTensor& t : problem_->tensors) {
    auto bytes = memory(t).download(&damage);
    if (!is_overwritten(t) && !modified) modified = difference(t, bytes);
    if (t.is_output) outputs[t.info->name] = std::move(bytes);
  }
  if (workspace_) workspace_->inspect(&damage);
  if (damage) throw Stop{Verdict::kOutOfBoundsWrite, "wrote " + *damage};
  if (modified) throw Stop{Verdict::kInputModified, "changed " + *modified};
  return outputs;
}

}  // namespace tigon
