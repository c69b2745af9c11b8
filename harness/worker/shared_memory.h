// SPDX-License-Identifier: Apache-2.0
// Memory that a worker shares with the one who started it: the tensors of a call lie in it.
#pragma once
#include <cstddef>

namespace tigon::worker {

class SharedMemory {
 public:
  // New memory, which may grow and never shrinks: the other side cannot take it away. Throws
  // std::runtime_error, as grow() and map() do.
  SharedMemory();
  // The other side's, under a descriptor that this process was started with.
  explicit SharedMemory(int descriptor) : descriptor_(descriptor) {}
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // At least `bytes` of it, page aligned; contents stay. Addresses from before do not.
  char* grow(size_t bytes);
  // The first `bytes`, which the other side has made.
  char* map(size_t bytes);

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }  // that are mapped
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  bool is_ours_ = false;
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tigon::worker
