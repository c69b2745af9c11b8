// SPDX-License-Identifier: Apache-2.0
// A library to preload: a disk that takes 4 kB of records and no more, or, with WORLD_DISK=sync,
// one that takes everything and fails when it must be made durable.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kSpace = 4096;

bool is_file(int descriptor) {
  struct stat info {};
  return descriptor > 2 && fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
}

bool only_sync_fails() {
  const char* which = std::getenv("WORLD_DISK");
  return which != nullptr && std::strcmp(which, "sync") == 0;
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static std::atomic<size_t> used{0};
  if (is_file(descriptor) && !only_sync_fails()) {
    const size_t before = used.fetch_add(count);
    if (before >= kSpace) {
      errno = ENOSPC;
      return -1;
    }
    if (before + count > kSpace) count = kSpace - before;  // a torn line
  }
  return syscall(SYS_write, descriptor, bytes, count);
}

int fsync(int descriptor) {
  if (is_file(descriptor) && only_sync_fails()) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

}  // extern "C"
