// SPDX-License-Identifier: Apache-2.0
// One arena for a whole training step, planned before the first: buffers whose lifetimes do not
// overlap share memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "convergence/step_parts.h"

namespace tigon::convergence {

// Use: run the code that takes the buffers once on a fresh plan, call place(), allocate that many
// bytes, then run the same code again after resolve(). The first pass gives placeholders that are
// not null and may not be touched.
class MemoryPlan {
 public:
  // A buffer of `count` elements that belongs to the part that writes it and is used from phase
  // `first` to phase `last`, both included; 256-byte aligned.
  template <class T>
  T* take(Part part, int64_t count, int first, int last) {
    return static_cast<T*>(take_bytes(part, count * static_cast<int64_t>(sizeof(T)), first, last));
  }

  // Chooses addresses: the largest buffer first, each at the lowest place that is free during its
  // life. Returns the bytes of the arena.
  int64_t place();

  // Bytes in use, by part: one for each phase.
  std::vector<ByPart<int64_t>> in_use() const;

  // Starts the second pass in the memory at `base`.
  void resolve(void* base);

 private:
  struct Buffer {
    Part part;
    int64_t bytes;
    int first, last;
    int64_t offset = -1;
    bool meets(const Buffer& o) const { return first <= o.last && o.first <= last; }
  };
  void* take_bytes(Part part, int64_t bytes, int first, int last);
  int64_t lowest_free(const Buffer& buffer) const;

  std::vector<Buffer> buffers_;
  char* base_ = nullptr;
  size_t next_ = 0;  // in the second pass
};

}  // namespace tigon::convergence
