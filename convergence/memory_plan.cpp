// SPDX-License-Identifier: Apache-2.0
// Placement of buffers by lifetime: first fit, largest first.
#include "convergence/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace tigon::convergence {

namespace {
constexpr int64_t kAlign = 256;
}

void* MemoryPlan::take_bytes(Part part, int64_t bytes, int first, int last) {
  if (base_ == nullptr) {
    buffers_.push_back({part, (bytes + kAlign - 1) / kAlign * kAlign, first, last});
    return reinterpret_cast<void*>(kAlign);
  }
  const Buffer& buffer = buffers_.at(next_++);
  if (bytes > buffer.bytes) throw std::logic_error("MemoryPlan: the two passes differ");
  return base_ + buffer.offset;
}

int64_t MemoryPlan::lowest_free(const Buffer& buffer) const {
  std::vector<const Buffer*> near;
  for (const Buffer& b : buffers_)
    if (b.offset >= 0 && b.meets(buffer)) near.push_back(&b);
  std::sort(near.begin(), near.end(),
            [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
  int64_t offset = 0;
  for (const Buffer* b : near) {
    if (offset + buffer.bytes <= b->offset) break;
    offset = std::max(offset, b->offset + b->bytes);
  }
  return offset;
}

int64_t MemoryPlan::place() {
  std::vector<size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers_[a].bytes > buffers_[b].bytes; });
  int64_t total = 0;
  for (size_t i : order) {
    buffers_[i].offset = lowest_free(buffers_[i]);
    total = std::max(total, buffers_[i].offset + buffers_[i].bytes);
  }
  return total;
}

std::vector<ByPart<int64_t>> MemoryPlan::in_use() const {
  std::vector<ByPart<int64_t>> phases;
  for (const Buffer& b : buffers_) {
    const auto end = static_cast<size_t>(b.last) + 1;
    if (phases.size() < end) phases.resize(end);
    for (auto phase = static_cast<size_t>(b.first); phase < end; ++phase)
      phases[phase][b.part] += b.bytes;
  }
  return phases;
}

void MemoryPlan::resolve(void* base) {
  base_ = static_cast<char*>(base);
  next_ = 0;
}

}  // namespace tigon::convergence
