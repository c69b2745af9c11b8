// SPDX-License-Identifier: Apache-2.0
// The memory of one call as the checking executor can watch it: every tensor and the scratch in
// device memory of its own, with red zones on both sides, so that an access outside of a tensor, a
// read between two rows and a read of what nobody wrote are seen. In other builds the memory as
// given.
#pragma once
#include "kernels/call/pass_info.h"
#include "kernels/call/tigon.h"
#include "kernels/device/platform.h"

#if TIGON_GPU

namespace tigon::tried {
struct WatchedMemory {
  WatchedMemory(const tigon_call& given, const call::PassInfo&) : call(given) {}
  const tigon_call& call;
  void give_back() {}
};
}  // namespace tigon::tried

#else

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/device/runtime.h"
#include "kernels/simt/simt.h"

namespace tigon::tried {

class WatchedMemory {
 public:
  WatchedMemory(const tigon_call& given, const call::PassInfo& info) : call(given) {
    if (simt::checked()) copy(info);
  }
  ~WatchedMemory() {
    for (const Range& r : ranges_) device_free(r.allocation);
  }
  WatchedMemory(const WatchedMemory&) = delete;
  WatchedMemory& operator=(const WatchedMemory&) = delete;

  tigon_call call;

  // What the kernel wrote becomes visible to the caller.
  void give_back() {
    for (const Range& r : ranges_) memcpy(r.begin, r.copy, r.size());
  }

 private:
  struct Range {
    char *begin, *end;  // of the caller
    char *allocation, *copy;
    size_t size() const { return static_cast<size_t>(end - begin); }
  };

  static constexpr size_t kAlignment = 256;

  static size_t element_bytes(const tigon_tensor& t) {
    return size_of(static_cast<DType>(t.dtype));
  }
  // From the first element to behind the last.
  static size_t extent(const tigon_tensor& t) {
    int64_t last = 0;
    for (int d = 0; d < t.rank; ++d) {
      if (t.sizes[d] == 0) return 0;
      last += (t.sizes[d] - 1) * t.strides[d];
    }
    return static_cast<size_t>(last + 1) * element_bytes(t);
  }

  void copy(const call::PassInfo& info) {
    // The judge's process limits its addresses; the checker reserves many and uses few.
    rlimit memory;
    getrlimit(RLIMIT_AS, &memory);
    memory.rlim_cur = memory.rlim_max;
    setrlimit(RLIMIT_AS, &memory);
    tensors_.assign(call.tensors, call.tensors + call.tensor_count);
    for (const tigon_tensor& t : tensors_) add(t.data, t.data == nullptr ? 0 : extent(t));
    add(call.scratch, call.scratch_bytes);
    merge();
    for (Range& r : ranges_) allocate(&r);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      tigon_tensor& t = tensors_[i];
      if (t.data == nullptr || extent(t) == 0) continue;
      char* copy = copy_of(t.data);
      const Role role = info.tensors[i].role;
      if (role == Role::kIn || role == Role::kInOut) fill_rows(t, copy);
      t.data = copy;
    }
    call.tensors = tensors_.data();
    if (call.scratch_bytes > 0) call.scratch = copy_of(call.scratch);
  }

  void add(void* data, size_t bytes) {
    char* begin = static_cast<char*>(data);
    if (bytes > 0) ranges_.push_back({begin, begin + bytes, nullptr, nullptr});
  }

  // Tensors that share memory go on sharing it.
  void merge() {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::vector<Range> merged;
    for (const Range& r : ranges_) {
      if (!merged.empty() && r.begin < merged.back().end)
        merged.back().end = std::max(merged.back().end, r.end);
      else
        merged.push_back(r);
    }
    ranges_ = std::move(merged);
  }

  // At an address as aligned as the caller's; nobody has written there yet.
  static void allocate(Range* r) {
    const size_t offset = reinterpret_cast<uintptr_t>(r->begin) % kAlignment;
    r->allocation = static_cast<char*>(device_alloc(offset + r->size()));
    r->copy = r->allocation + offset;
    memcpy(r->copy, r->begin, r->size());
    device_mark_uninitialized(r->allocation, offset + r->size());
  }

  char* copy_of(const void* data) const {
    const char* p = static_cast<const char*>(data);
    for (const Range& r : ranges_)
      if (p >= r.begin && p < r.end) return r.copy + (p - r.begin);
    return nullptr;
  }

  static void fill_rows(const tigon_tensor& t, char* copy) {
    const int64_t columns = t.rank == 0 ? 1 : t.sizes[t.rank - 1];
    int64_t rows = 1;
    for (int d = 0; d + 1 < t.rank; ++d) rows *= t.sizes[d];
    for (int64_t row = 0; row < rows; ++row) {
      int64_t at = 0, rest = row;
      for (int d = t.rank - 2; d >= 0; --d) {
        at += rest % t.sizes[d] * t.strides[d];
        rest /= t.sizes[d];
      }
      const size_t bytes = element_bytes(t);
      const auto offset = static_cast<size_t>(at) * bytes;
      device_copy(copy + offset, static_cast<const char*>(t.data) + offset,
                  static_cast<size_t>(columns) * bytes);
    }
  }

  std::vector<tigon_tensor> tensors_;
  std::vector<Range> ranges_;
};

}  // namespace tigon::tried

#endif
