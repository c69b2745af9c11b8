// SPDX-License-Identifier: Apache-2.0
// Calls on tiled tensors.
#include "harness/run/memory/tiled_launch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "harness/run/inputs/inputs.h"
#include "harness/run/memory/stop.h"

namespace tigon {

namespace {

void require_launched(const Status& status) {
  if (status.ok()) return;
  throw Stop{status.code == Status::kUnsupported ? Verdict::kUnsupported : Verdict::kRuntimeError,
             status.reason};
}

}  // namespace

TiledLaunch::TiledLaunch(const Case& c, const OpSpec& op, const Pass& pass, int64_t rows)
    : case_(c) {
  const std::string row_axis = op.axes.front().axis.symbol;
  case_.axes[row_axis] = rows;
  binding_ = binding_of(case_, op, pass);
  for (const TensorInfo& info : pass.tensors)
    if (!is_left_out(info, c.options))
      tensors_.emplace_back(info, info.dtype.at(c.dtype), binding_, row_axis);
}

const TiledTensor* TiledLaunch::find(const std::string& name) const {
  for (const TiledTensor& t : tensors_)
    if (t.info().name == name) return &t;
  return nullptr;
}

TiledTensor* TiledLaunch::find(const std::string& name) {
  return const_cast<TiledTensor*>(std::as_const(*this).find(name));
}

void TiledLaunch::plan(const InputSet& set, uint64_t seed) {
  for (TiledTensor& t : tensors_)
    if (t.is_input()) t.plan(plan_of(set, t.info().name), seed, binding_);
}

void TiledLaunch::fill(unsigned char poison) {
  for (TiledTensor& t : tensors_)
    if (t.is_input())
      t.fill();
    else
      t.poison(poison);
}

void TiledLaunch::run(const Implementation& implementation, double* seconds) {
  Bound bound;
  bound.values = binding_;
  for (const TiledTensor& t : tensors_) bound.tensors[t.info().name] = t.ref();
  const size_t bytes = implementation.workspace ? implementation.workspace(case_.dtype, bound) : 0;
  const DeviceBuffer workspace(std::max<size_t>(bytes, 1));
  device_fill(workspace.data(), 0xff, workspace.bytes());
  if (bytes > 0) bound.scratch = {workspace.data(), bytes};
  if (implementation.prepare) require_launched(implementation.prepare(case_.dtype, bound));
  const auto start = std::chrono::steady_clock::now();
  require_launched(implementation.run(case_.dtype, bound, nullptr));
  stream_synchronize(nullptr);
  if (seconds)
    *seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const TiledTensor& t : tensors_)
    if (!t.guards_hold())
      throw Stop{Verdict::kOutOfBoundsWrite, "wrote outside of " + t.info().name};
}

}  // namespace tigon
