// SPDX-License-Identifier: Apache-2.0
// Shared memory of the blocks of one cluster, in one arena, so that a peer's array is an offset
// away.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simt/model.h"

namespace tigon::simt {

struct SharedSite;

class SharedMemory {
 public:
  static constexpr size_t kStaticBytes = 48 * 1024;  // CUDA's limit for static arrays
  static constexpr size_t kDynamicBytes = kSharedPerBlock;
  static constexpr size_t kGuardBytes = 4096;  // behind the dynamic array
  static constexpr size_t kBlockBytes = kStaticBytes + kDynamicBytes + kGuardBytes;

  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // Forgets the previous launch's arrays.
  void begin_launch(unsigned blocks, size_t dynamic_bytes, bool poison);
  // New blocks: the contents of every array are undefined.
  void begin_group();
  char* block(unsigned rank) const { return arena_ + rank * kBlockBytes; }
  // Offset of a new static array, or kStaticBytes when they no longer fit.
  size_t add_array(size_t bytes, size_t align);
  // Rank of the block that owns p, or -1.
  int owner(const void* p) const;

 private:
  struct Array {
    size_t offset, bytes;
  };
  void undefine(size_t offset, size_t bytes);
  char* arena_ = nullptr;
  unsigned capacity_ = 0, blocks_ = 0;
  size_t static_used_ = 0, dynamic_bytes_ = 0;
  bool poison_ = true;
  std::vector<Array> arrays_;
};

}  // namespace tigon::simt
