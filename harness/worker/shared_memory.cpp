// SPDX-License-Identifier: Apache-2.0
// Shared memory without a name: a memfd.
#include "harness/worker/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tigon::worker {

namespace {

constexpr size_t kStep = size_t{1} << 20;

[[noreturn]] void fail() {
  throw std::runtime_error(std::string("shared memory: ") + std::strerror(errno));
}

}  // namespace

SharedMemory::SharedMemory()
    : descriptor_(memfd_create("tigon-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING)), is_ours_(true) {
  if (descriptor_ < 0 || fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) fail();
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (is_ours_) close(descriptor_);
}

char* SharedMemory::grow(size_t bytes) {
  if (bytes <= bytes_) return data_;
  const size_t wanted = (bytes + kStep - 1) / kStep * kStep;
  if (ftruncate(descriptor_, static_cast<off_t>(wanted)) != 0) fail();
  return map(wanted);
}

char* SharedMemory::map(size_t bytes) {
  if (bytes <= bytes_) return data_;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) fail();
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = static_cast<char*>(mapped);
  bytes_ = bytes;
  return data_;
}

}  // namespace tigon::worker
